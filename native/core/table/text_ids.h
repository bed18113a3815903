#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

// Texts that are told apart, each with its number: by the order in which they came. A hash table of
// numbers, whose texts stand in pieces of memory that never move; a text takes its bytes and about
// 25 more.

namespace gnnd {

class TextIds {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 20;
  // Longer ones are no ids.
  static constexpr size_t kTextBytesMax = 3072;
  // Shorter ones are ids, whatever their letters.
  static constexpr size_t kPlainBytesMax = 1024;

  TextIds();

  // The number of a text that is new; nothing where it was there before. REQUIRES: no line feed in
  // it, and no more than kTextBytesMax.
  std::optional<uint32_t> Add(std::string_view text);
  // Adds new texts, by line feeds, up to one that was there before or that is longer than
  // kPlainBytesMax or has a carriage return, which a reader of rows judges: how many.
  uint64_t AddLines(std::string_view texts);
  // The text's number, new or not.
  uint32_t NumberOf(std::string_view text);
  // Nothing where nobody added it.
  std::optional<uint32_t> Find(std::string_view text) const;
  // The numbers of texts, several at a time, so that their waits for memory overlap. False, and
  // no number is worth anything, where one is of none.
  bool FindAll(std::span<const std::string_view> texts, uint32_t* numbers) const;

  size_t size() const { return places_.size(); }
  std::string_view At(uint32_t number) const;
  // All texts in their order, a line feed behind each, in pieces.
  size_t num_pieces() const { return blocks_.size(); }
  std::string_view Piece(size_t at) const { return {blocks_[at].bytes.get(), blocks_[at].length}; }

 private:
  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t length = 0;
  };

  // The first slot from `slot` on that has the hash, or none.
  size_t NextSlot(size_t slot, uint32_t hash) const;
  // Of the text's slot, or of the one where it would be.
  size_t SlotOf(std::string_view text, uint32_t hash) const;
  bool IsAt(uint64_t place, std::string_view text) const;
  uint32_t Put(size_t slot, std::string_view text, uint32_t hash);
  void Grow();

  std::vector<Block> blocks_;
  std::vector<uint64_t> places_;  // of each text: its piece times kPieceBytes, plus the offset
  // A text's hash above its number + 1, or 0; at most three quarters of them are in use.
  std::vector<uint64_t> slots_;
};

}  // namespace gnnd
