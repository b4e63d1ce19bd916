#include "device/host/native/object_code.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace ae::device::host::native {
namespace {

[[noreturn]] void fail(const std::string& why) { throw std::runtime_error("native code: the object file " + why); }

/// The parts of an object file, checked against its size.
class Object {
 public:
  explicit Object(const std::string& bytes) : bytes_(bytes) {
    const auto& header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != EM_X86_64 || header.e_type != ET_REL)
      fail("is of another kind");
    for (size_t i = 0; i < header.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    names_ = sections_.at(header.e_shstrndx);
  }

  template <class T>
  const T& at(size_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) fail("is damaged");
    return *reinterpret_cast<const T*>(bytes_.data() + offset);
  }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const char* text(const Elf64_Shdr& strings, size_t offset) const { return &at<char>(strings.sh_offset + offset); }
  const char* name(const Elf64_Shdr& section) const { return text(names_, section.sh_name); }
  const char* contents(const Elf64_Shdr& section) const {
    if (section.sh_size > 0) at<char>(section.sh_offset + section.sh_size - 1);
    return bytes_.data() + section.sh_offset;
  }

 private:
  const std::string& bytes_;
  std::vector<Elf64_Shdr> sections_;
  Elf64_Shdr names_{};
};

bool is_loaded(const Object& object, const Elf64_Shdr& section) {
  return (section.sh_flags & SHF_ALLOC) && section.sh_type == SHT_PROGBITS && section.sh_size > 0 &&
         std::strcmp(object.name(section), ".eh_frame") != 0;
}

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/// Writes what a relocation says at `place`.
void relocate(char* place, uint32_t type, uint64_t symbol, int64_t addend) {
  const auto address = reinterpret_cast<uint64_t>(place);
  switch (type) {
    case R_X86_64_64: {
      const uint64_t value = symbol + static_cast<uint64_t>(addend);
      std::memcpy(place, &value, sizeof(value));
      return;
    }
    case R_X86_64_PC32:
    case R_X86_64_PLT32: {
      const auto distance = static_cast<int32_t>(symbol + static_cast<uint64_t>(addend) - address);
      std::memcpy(place, &distance, sizeof(distance));
      return;
    }
    default: fail("has a relocation of type " + std::to_string(type));
  }
}

}  // namespace

ObjectCode::ObjectCode(const std::string& bytes, size_t count) : functions_(count, nullptr) {
  const Object object(bytes);
  const auto& sections = object.sections();
  std::vector<size_t> offsets(sections.size(), 0);
  for (size_t s = 0; s < sections.size(); ++s) {
    if (!is_loaded(object, sections[s])) continue;
    offsets[s] = round_up(size_, std::max<size_t>(sections[s].sh_addralign, 1));
    size_ = offsets[s] + sections[s].sh_size;
  }
  size_ = round_up(std::max<size_t>(size_, 1), static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) fail("does not fit into memory");
  char* base = static_cast<char*>(memory_);
  const auto address_of = [&](const Elf64_Sym& symbol) {
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= sections.size()) fail("needs a symbol from elsewhere");
    return reinterpret_cast<uint64_t>(base) + offsets[symbol.st_shndx] + symbol.st_value;
  };
  try {
    for (size_t s = 0; s < sections.size(); ++s) {
      if (is_loaded(object, sections[s]))
        std::memcpy(base + offsets[s], object.contents(sections[s]), sections[s].sh_size);
    }
    for (const Elf64_Shdr& section : sections) {
      if (section.sh_type == SHT_RELA && is_loaded(object, sections.at(section.sh_info))) {
        const Elf64_Shdr& symbols = sections.at(section.sh_link);
        for (size_t r = 0; r < section.sh_size / sizeof(Elf64_Rela); ++r) {
          const auto& rela = object.at<Elf64_Rela>(section.sh_offset + r * sizeof(Elf64_Rela));
          const auto& symbol = object.at<Elf64_Sym>(symbols.sh_offset + ELF64_R_SYM(rela.r_info) * sizeof(Elf64_Sym));
          relocate(base + offsets[section.sh_info] + rela.r_offset, static_cast<uint32_t>(ELF64_R_TYPE(rela.r_info)),
                   address_of(symbol), rela.r_addend);
        }
      } else if (section.sh_type == SHT_SYMTAB) {
        const Elf64_Shdr& strings = sections.at(section.sh_link);
        for (size_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
          const auto& symbol = object.at<Elf64_Sym>(section.sh_offset + i * sizeof(Elf64_Sym));
          const char* name = object.text(strings, symbol.st_name);
          if (std::strncmp(name, "run_", 4) == 0)
            functions_.at(std::stoul(name + 4)) = reinterpret_cast<RunFunction>(address_of(symbol));
        }
      }
    }
    for (const RunFunction function : functions_) {
      if (!function) fail("lacks a function");
    }
    if (mprotect(memory_, size_, PROT_READ | PROT_EXEC) != 0) fail("may not be executed here");
  } catch (const std::out_of_range&) {
    munmap(memory_, size_);
    fail("is damaged");
  } catch (...) {
    munmap(memory_, size_);
    throw;
  }
}

ObjectCode::~ObjectCode() { munmap(memory_, size_); }

}  // namespace ae::device::host::native
