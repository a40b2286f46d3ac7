#pragma once
// Diagnostics for people (the line, a caret, what would be legal) and for programs (JSON). Neither
// prints: the caller knows where to and whether colour is wanted.
//
//   Sources sources = {{scenario.file, scenario.text}};
//   std::cerr << RenderDiagnostics(diagnostics, sources);
//   std::cout << DiagnosticsToJson(diagnostics).dump(2) << "\n";

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/diagnostic.h"

namespace shardlab {

using Sources = std::map<std::string, std::string>;  // file -> its text

// Adds the text of the files that diagnostics name and `sources` lacks, where it can be read.
void LoadSources(const Diagnostics& diagnostics, Sources* sources);

//   70b.toml:12:10: error: degree must be a whole number, not a string
//       degree = "8"
//                ^
//     hint: write degree = 8
// A line without a known source is left out, with its caret. A tab is shown as spaces, a line of
// more than about 100 columns is cut around the caret. In the order given: see Diagnostics::Sort.
std::string RenderDiagnostics(const Diagnostics& diagnostics, const Sources& sources,
                              bool color = false);

// {severity, code, message, file, line, column, key, hint, other_places: [{file, line, column,
// key}]}
nlohmann::ordered_json DiagnosticToJson(const Diagnostic& diagnostic);
// {schema: "shardlab.diagnostics/1", diagnostics: [...]}. All strings are valid UTF-8, so dump()
// never throws.
nlohmann::ordered_json DiagnosticsToJson(const Diagnostics& diagnostics);

}  // namespace shardlab
