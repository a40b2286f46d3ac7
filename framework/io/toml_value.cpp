#include "io/toml_value.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <exception>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "io/read_file.h"
#include "io/toml_limits.h"
#include "io/utf8.h"

namespace shardlab {
namespace {

// Every value carries its whole key; without a limit, long keys times many values would fill the
// memory.
constexpr std::size_t kMaximumKeyBytes = 1000;
constexpr int kMaximumDates = 100;  // told one by one; nobody reads more

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04X", byte);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string KeySegment(std::string_view segment) {
  const bool bare = !segment.empty() && std::all_of(segment.begin(), segment.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '_' || c == '-';
  });
  return bare ? std::string(segment) : Quoted(segment);
}

class Converter final {
 public:
  Converter(const std::string& file, bool with_lines, Diagnostics& diagnostics)
      : file_(file), with_lines_(with_lines), diagnostics_(diagnostics) {}

  Value Convert(const toml::node& node, const std::string& key) {
    Value value;
    value.place = At(node.source().begin, key);
    switch (node.type()) {
      case toml::node_type::table:
        ConvertTable(*node.as_table(), key, &value);
        break;
      case toml::node_type::array: {
        value.kind = Value::kArray;
        const toml::array& array = *node.as_array();
        value.array.reserve(array.size());
        for (std::size_t i = 0; i < array.size(); ++i) {
          value.array.push_back(Convert(array[i], key + "[" + std::to_string(i) + "]"));
        }
        break;
      }
      case toml::node_type::string:
        value.kind = Value::kText;
        value.text = node.as_string()->get();
        break;
      case toml::node_type::integer:
        value.kind = Value::kInteger;
        value.integer = node.as_integer()->get();
        value.number = static_cast<double>(value.integer);
        break;
      case toml::node_type::floating_point:
        value.kind = Value::kNumber;
        value.number = node.as_floating_point()->get();
        break;
      case toml::node_type::boolean:
        value.kind = Value::kBoolean;
        value.boolean = node.as_boolean()->get();
        break;
      default:
        if (++dates_ > kMaximumDates) break;
        diagnostics_.Error("toml.date", value.place,
                           key + " is a date or time, which nothing here understands",
                           "write it in quotes if a string is meant");
        break;
    }
    return value;
  }

 private:
  Place At(const toml::source_position& position, const std::string& key) const {
    if (!with_lines_) return {file_, 0, 0, key};
    return {file_, static_cast<int>(position.line), static_cast<int>(position.column), key};
  }

  void ConvertTable(const toml::table& table, const std::string& key, Value* value) {
    value->kind = Value::kTable;
    value->table.reserve(table.size());
    // The library keeps tables in order of name; people think in the order of the file.
    std::vector<std::pair<const toml::key*, const toml::node*>> children;
    children.reserve(table.size());
    for (auto it = table.begin(); it != table.end(); ++it)
      children.emplace_back(&it->first, &it->second);
    std::sort(children.begin(), children.end(), [](const auto& a, const auto& b) {
      const toml::source_position& left = a.first->source().begin;
      const toml::source_position& right = b.first->source().begin;
      return std::tie(left.line, left.column) < std::tie(right.line, right.column);
    });
    for (const auto& child : children) {
      const toml::key& name = *child.first;
      Place key_place = At(name.source().begin, "");
      if (name.str().size() + key.size() > kMaximumKeyBytes) {
        diagnostics_.Error("toml.key_length", std::move(key_place),
                           "key is too long (more than " + std::to_string(kMaximumKeyBytes) +
                               " bytes with the tables around it)");
        continue;
      }
      key_place.key = JoinTomlKey(key, name.str());
      Value child_value = Convert(*child.second, key_place.key);
      child_value.key_place = std::move(key_place);
      value->table.emplace_back(std::string(name.str()), std::move(child_value));
    }
  }

  const std::string& file_;
  bool with_lines_;
  Diagnostics& diagnostics_;
  int dates_ = 0;
};

std::string_view Trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::size_t LineStart(std::string_view text, int line) {
  std::size_t at = 0;
  for (int i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) return text.size();
    at = end + 1;
  }
  return at;
}

// What somebody who wrote `plugin = llama` or `memory = 80 GB` needs to be told.
std::string QuotesHint(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return "";
  const std::string_view key = Trimmed(line.substr(0, equals));
  std::string_view value = line.substr(equals + 1);
  value = Trimmed(value.substr(0, value.find('#')));
  constexpr std::size_t kShort = 60;
  if (key.empty() || value.empty() || key.size() > kShort || value.size() > kShort ||
      value.find_first_of("\"'[]{}=,") != std::string_view::npos) {
    return "";
  }
  std::string lower(value);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return c < 0x80 ? static_cast<char>(std::tolower(c)) : static_cast<char>(c);
  });
  if (lower == "true" || lower == "yes" || lower == "on")
    return "write " + std::string(key) + " = true";
  if (lower == "false" || lower == "no" || lower == "off")
    return "write " + std::string(key) + " = false";
  const std::string fixed = std::string(key) + " = \"" + std::string(value) + "\"";
  const auto byte = static_cast<unsigned char>(value.front());
  if (IsLetter(value.front()) || byte >= 0x80) return "a string is written in quotes: " + fixed;
  const bool number = IsDigit(value.front()) || value.front() == '-' || value.front() == '.';
  if (number && std::any_of(value.begin(), value.end(), IsLetter)) {
    return "a quantity is written as a string with its unit: " + fixed;
  }
  return "";
}

void ReplaceAll(std::string* text, std::string_view from, std::string_view to) {
  for (std::size_t at = text->find(from); at != std::string::npos;
       at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
  }
}

// Where the key was defined first, when the text before the second definition is sound TOML: a
// marker after it tells which table it ends in.
std::optional<Place> FirstDefinition(std::string_view text, const Place& again,
                                     const std::string& quoted) {
  const std::string marker = "shardlab-marker";
  const std::string before(text.substr(0, LineStart(text, again.line)));
  try {
    const toml::table root = toml::parse(before + marker + " = 0\n");
    Diagnostics ignored;
    const Value tree = Converter(again.file, true, ignored).Convert(root, "");
    const std::string_view line =
        text.substr(before.size(), text.find('\n', before.size()) - before.size());
    const bool header = !Trimmed(line).empty() && Trimmed(line).front() == '[';
    const Value* found = nullptr;
    if (header) {
      found = tree.FindPath(quoted);
    } else {
      std::vector<const Value*> open = {&tree};
      while (!open.empty() && found == nullptr) {
        const Value* table = open.back();
        open.pop_back();
        if (table->Find(marker) != nullptr) found = table->FindPath(quoted);
        for (const auto& [name, child] : table->table) open.push_back(&child);
        for (const Value& child : table->array) open.push_back(&child);
      }
    }
    if (found != nullptr && found->key_place.line > 0) return found->key_place;
  } catch (const std::exception&) {
    // The text before is in the middle of something: no second place then.
  }
  return std::nullopt;
}

// The library says "Error while parsing CONTEXT: PROBLEM".
// The library reports a number at its end; people look for it at its beginning. Bytes are columns
// here: before a number stand only keys and blanks, and where they do not (a quoted key) the caret
// stays where it is.
void PointAt(const std::string& token, std::string_view line, Place* place) {
  const std::size_t at = token.empty() ? std::string_view::npos
                                       : line.rfind(token, static_cast<std::size_t>(place->column));
  if (at != std::string_view::npos) place->column = static_cast<int>(at) + 1;
}

void PointAtToken(std::string_view line, Place* place) {
  std::size_t at = std::min(line.size(), static_cast<std::size_t>(std::max(0, place->column - 1)));
  const auto in_token = [&](std::size_t i) {
    return std::string_view(" \t=,[]{}").find(line[i]) == std::string_view::npos;
  };
  while (at > 0 && in_token(at - 1)) --at;
  place->column = static_cast<int>(at) + 1;
}

void ReportSyntax(const toml::parse_error& error, std::string_view text, const std::string& file,
                  Diagnostics& diagnostics) {
  Diagnostic diagnostic;
  diagnostic.place = {file, static_cast<int>(error.source().begin.line),
                      static_cast<int>(error.source().begin.column), ""};
  std::string problem(error.description());
  std::string context;
  const std::string_view prefix = "Error while parsing ";
  if (problem.compare(0, prefix.size(), prefix) == 0) {
    const std::size_t colon = problem.find(": ");
    if (colon != std::string::npos) {
      context = problem.substr(prefix.size(), colon - prefix.size());
      problem.erase(0, colon + 2);
    }
  }

  const std::size_t start = LineStart(text, diagnostic.place.line);
  const std::string_view line = text.substr(start, text.find('\n', start) - start);
  const std::size_t quote = problem.find('\'');
  const std::size_t last_quote = problem.rfind('\'');
  const std::string quoted = last_quote > quote && last_quote != std::string::npos
                                 ? problem.substr(quote + 1, last_quote - quote - 1)
                                 : "";

  if (problem.find("cannot redefine") != std::string::npos) {
    diagnostic.code = "toml.duplicate";
    diagnostic.message = "'" + quoted + "' is defined twice (" + problem + ")";
    diagnostic.hint = "a key and a [table] stand once in a file";
    if (const auto first = FirstDefinition(text, diagnostic.place, quoted)) {
      diagnostic.other_places.push_back(*first);
    }
  } else if (problem.find("not representable in 64 bits") != std::string::npos) {
    diagnostic.code = "toml.integer";
    diagnostic.message = "whole number " + quoted + " is too large (it does not fit in 64 bits)";
    PointAt(quoted, line, &diagnostic.place);
  } else {
    diagnostic.code = "toml.syntax";
    const bool in_string = context.find("string") != std::string::npos;
    const std::size_t byte = [&] {
      std::size_t at = start;
      for (int column = 1; column < diagnostic.place.column && at < text.size(); ++column) {
        at += DecodeUtf8(text, at).bytes;
      }
      return at;
    }();
    const bool at_end = byte >= text.size();
    // The library may count on past the end of the line.
    if (at_end) {
      int length = 0;
      for (std::size_t at = 0; at < line.size(); at += DecodeUtf8(line, at).bytes) ++length;
      diagnostic.place.column = std::min(diagnostic.place.column, length + 1);
    }
    if (in_string && problem.find("control characters") != std::string::npos && !at_end &&
        (text[byte] == '\n' || text[byte] == '\r')) {
      problem = "the string is not closed on its line";
      diagnostic.hint =
          "close it with its quote, or write a string of several lines between \"\"\" and \"\"\"";
    }
    // The library spells line breaks as a backslash and a letter.
    ReplaceAll(&problem, "saw '\\n'", "saw the end of the line");
    ReplaceAll(&problem, "saw '\\r'", "saw the end of the line");
    ReplaceAll(&problem, "encountered end-of-file", "the file ends here");
    ReplaceAll(&problem, "could not determine value type",
               "this is no string, number, true or false, list or table");
    diagnostic.message = "not valid TOML: " + problem;
    const bool vowel =
        !context.empty() && std::string_view("aeiou").find(context[0]) != std::string_view::npos;
    if (!context.empty())
      diagnostic.message +=
          std::string(" (while reading ") + (vowel ? "an " : "a ") + context + ")";
    if (context.find("integer") != std::string::npos ||
        context.find("float") != std::string::npos) {
      PointAtToken(line, &diagnostic.place);
    }
    if (Trimmed(text).substr(0, 1) == "{") {
      diagnostic.hint =
          "this looks like JSON; a scenario is TOML: [model] on a line of its own, then plugin = "
          "\"...\"";
    }
    if (diagnostic.hint.empty()) {
      diagnostic.hint = QuotesHint(line);
    }
    if (diagnostic.hint.empty() && context == "root table") {
      diagnostic.hint = "keys are of A-Z, a-z, 0-9, _ and -, or in quotes";
    }
  }
  diagnostics.Add(std::move(diagnostic));
}

}  // namespace

std::string JoinTomlKey(const std::string& parent, std::string_view segment) {
  return parent.empty() ? KeySegment(segment) : parent + "." + KeySegment(segment);
}

Value ParseToml(const std::string& text, const std::string& file, Diagnostics& diagnostics) {
  const std::string_view body = WithoutByteOrderMark(text);
  if (!CheckTomlLimits(body, file, diagnostics)) return Value();
  try {
    const toml::table root = toml::parse(body);
    if (root.empty()) {
      diagnostics.Error(
          "file.empty", {file, 0, 0, ""},
          Trimmed(body).empty() ? "is empty" : "holds no keys (only blank lines and comments)");
      return Value();
    }
    Value value = Converter(file, true, diagnostics).Convert(root, "");
    value.place = {file, 1, 1, ""};
    return value;
  } catch (const toml::parse_error& error) {
    ReportSyntax(error, body, file, diagnostics);
  } catch (const std::exception& error) {
    diagnostics.Error("toml.syntax", {file, 0, 0, ""},
                      std::string("cannot be read as TOML (") + error.what() + ")");
  }
  return Value();
}

Value ReadTomlFile(const std::string& path, Diagnostics& diagnostics) {
  const std::optional<std::string> text = ReadTextFile(path, diagnostics);
  return text ? ParseToml(*text, path, diagnostics) : Value();
}

std::optional<Value> ParseTomlValue(std::string_view text, const std::string& file,
                                    const std::string& key, Diagnostics& diagnostics) {
  const std::string line = "value = " + std::string(text);
  Diagnostics ignored;
  if (!CheckTomlLimits(line, file, ignored)) return std::nullopt;
  try {
    const toml::table root = toml::parse(line);
    // "1\nother = 2" is more than a value.
    if (root.size() != 1) return std::nullopt;
    return Converter(file, false, diagnostics).Convert(*root.get("value"), key);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

namespace {

// The segments of a key that needs no quotes; nothing for any other text.
std::optional<std::vector<std::string>> BareKey(std::string_view text) {
  std::vector<std::string> segments(1);
  for (const char c : text) {
    const bool bare = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-';
    if (bare) {
      segments.back() += c;
    } else if (c == '.' && !segments.back().empty()) {
      segments.emplace_back();
    } else {
      return std::nullopt;
    }
  }
  if (segments.back().empty() || segments.size() > 8) return std::nullopt;
  return segments;
}

}  // namespace

std::optional<std::vector<std::string>> ParseTomlKey(std::string_view text) {
  if (std::optional<std::vector<std::string>> bare = BareKey(text)) return bare;
  // The marker cannot be reached by any text that holds no line break: a comment or '=' of its own
  // makes the line something else than one chain of tables that ends in `0`.
  if (text.find_first_of("\n\r") != std::string_view::npos) return std::nullopt;
  const std::string line = std::string(text) + " = 0";
  Diagnostics ignored;
  if (!CheckTomlLimits(line, "", ignored)) return std::nullopt;
  std::vector<std::string> segments;
  try {
    const toml::table root = toml::parse(line);
    const toml::node* at = &root;
    while (const toml::table* table = at->as_table()) {
      if (table->size() != 1) return std::nullopt;
      const auto first = table->begin();
      segments.emplace_back(first->first.str());
      at = &first->second;
    }
    const toml::value<std::int64_t>* end = at->as_integer();
    if (end == nullptr || end->get() != 0) return std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return segments;
}

std::string ToToml(const Value& value) {
  std::string out;
  switch (value.kind) {
    case Value::kNone:
      return "\"\"";
    case Value::kBoolean:
      return value.boolean ? "true" : "false";
    case Value::kInteger:
      return std::to_string(value.integer);
    case Value::kNumber:
      if (std::isnan(value.number)) return "nan";
      if (std::isinf(value.number)) return value.number < 0 ? "-inf" : "inf";
      out = ShortNumber(value.number);
      if (value.number == 0) out = std::signbit(value.number) ? "-0" : "0";
      // A whole number would read back as an integer.
      return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
    case Value::kText:
      return Quoted(value.text);
    case Value::kArray:
      for (const Value& item : value.array) out += (out.empty() ? "" : ", ") + ToToml(item);
      return "[" + out + "]";
    case Value::kTable:
      for (const auto& [name, item] : value.table) {
        out += (out.empty() ? "" : ", ") + KeySegment(name) + " = " + ToToml(item);
      }
      return out.empty() ? "{}" : "{ " + out + " }";
  }
  return out;
}

}  // namespace shardlab
