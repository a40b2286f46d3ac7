#include "io/elf_check.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace shardlab {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kHostMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kHostMachine = EM_AARCH64;
#else
#error "CheckElf does not know this CPU"
#endif

class File final {
 public:
  // O_NONBLOCK: a named pipe called x.so must not hang the program.
  explicit File(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }
  bool Read(void* to, std::size_t size, std::uint64_t offset) const {
    return pread(descriptor_, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  }

 private:
  int descriptor_;
};

std::string MachineName(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "x86, 32 bits";
    case EM_ARM:
      return "arm, 32 bits";
    case EM_PPC64:
      return "ppc64";
    case EM_RISCV:
      return "riscv";
    case EM_S390:
      return "s390";
    default:
      return absl::StrCat("ELF machine ", machine);
  }
}

absl::Status Refuse(const std::string& why) { return absl::InvalidArgumentError(why); }

// Written so that offset + count * entry cannot wrap around: both numbers come from the file.
bool Inside(std::uint64_t offset, std::uint64_t count, std::uint64_t entry, std::uint64_t size) {
  if (offset > size) return false;
  return entry == 0 || count <= (size - offset) / entry;
}

absl::Status CutShort(const char* what, std::uint64_t size) {
  return Refuse(absl::StrCat("is cut short: ", what, " lies outside its ", size, " bytes"));
}

absl::Status CheckIdentity(const Elf64_Ehdr& header) {
  const unsigned char* id = header.e_ident;
  if (id[EI_CLASS] != ELFCLASS64) return Refuse("is a 32-bit library, this host needs 64 bits");
  if (id[EI_DATA] != ELFDATA2LSB)
    return Refuse("is for a big-endian CPU, this host is little-endian");
  if (id[EI_VERSION] != EV_CURRENT || header.e_version != EV_CURRENT) {
    return Refuse("has an ELF version that does not exist");
  }
  if (header.e_machine != kHostMachine) {
    return Refuse(absl::StrCat("is for another CPU (", MachineName(header.e_machine),
                               "), this host is ", MachineName(kHostMachine)));
  }
  if (header.e_type != ET_DYN) return Refuse("is an ELF file, but not a shared library");
  return absl::OkStatus();
}

absl::Status CheckSegments(const File& file, const Elf64_Ehdr& header, std::uint64_t size) {
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return Refuse("has no program headers that can be read, so there is nothing to load");
  }
  if (!Inside(header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr), size)) {
    return CutShort("its table of segments", size);
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!file.Read(segments.data(), segments.size() * sizeof(Elf64_Phdr), header.e_phoff)) {
    return Refuse("cannot be read");
  }
  bool loads = false;
  bool dynamic = false;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_DYNAMIC) dynamic = true;
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    loads = loads || segment.p_type == PT_LOAD;
    if (!Inside(segment.p_offset, segment.p_filesz, 1, size)) return CutShort("a segment", size);
    if (segment.p_filesz > segment.p_memsz) {
      return Refuse("is damaged: a segment is larger in the file than in memory");
    }
  }
  if (!loads || !dynamic) return Refuse("is damaged: it has no segment to load");
  return absl::OkStatus();
}

absl::Status CheckSections(const Elf64_Ehdr& header, std::uint64_t size) {
  // A stripped library may have no section table; one that it claims to have must be there, since
  // it stands last in the file and so notices nearly every truncation.
  if (header.e_shoff == 0) return absl::OkStatus();
  if (header.e_shnum != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) {
    return Refuse("is damaged: its section table has entries of another size");
  }
  if (!Inside(header.e_shoff, header.e_shnum, sizeof(Elf64_Shdr), size)) {
    return CutShort("its table of sections", size);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckElf(const std::string& path) {
  const File file(path);
  if (file.descriptor() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return absl::NotFoundError("does not exist");
    return Refuse(absl::StrCat("cannot be opened: ", std::strerror(errno)));
  }
  struct stat facts {};
  if (fstat(file.descriptor(), &facts) != 0) return Refuse("cannot be read");
  if (S_ISDIR(facts.st_mode)) return Refuse("is a directory, not a shared library");
  if (!S_ISREG(facts.st_mode)) return Refuse("is not a regular file");
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (size == 0) return Refuse("is an empty file");

  unsigned char magic[SELFMAG] = {};
  if (size < SELFMAG || !file.Read(magic, SELFMAG, 0) || std::memcmp(magic, ELFMAG, SELFMAG) != 0) {
    return Refuse("is not a shared library (it does not begin as an ELF file does)");
  }
  // A 32-bit header is shorter and has other fields behind e_ident; the class is refused before
  // they matter.
  if (size < sizeof(Elf64_Ehdr)) return CutShort("its header", size);
  Elf64_Ehdr header;
  if (!file.Read(&header, sizeof header, 0)) return Refuse("cannot be read");

  if (absl::Status ok = CheckIdentity(header); !ok.ok()) return ok;
  if (absl::Status ok = CheckSegments(file, header, size); !ok.ok()) return ok;
  return CheckSections(header, size);
}

}  // namespace shardlab
