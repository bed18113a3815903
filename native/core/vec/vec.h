#pragma once

// Thin vectors of logical width, for loops that are written once and compiled once for each
// instruction set: files named *_loops.cc, which native/cmake/loops.cmake compiles with
// GNND_SET=plain, avx2, avx512 or neon and that set's options, and which nobody else includes this
// for.
//
// Widths are logical: 16 elements (Lanes16), or eight where a sum over lanes decides bits (Eight).
// How many registers that is belongs to the set. Bits do not depend on it: every operation is one
// of a lane, or one of whole numbers.
//
// Arithmetic is the compiler's own on its vectors (lanes.h). A set's header adds what compilers do
// not find: the product of 32-bit numbers with all its bits, masks, compressing, float16, and loads
// and stores of the first few lanes.
//
// A loops file puts all it has into namespace gnnd::GNND_SET, and into an anonymous namespace
// there except its table of functions (dispatch.h). So nothing that was compiled for a set can be
// taken for anything else: it exports no weak symbol (test/process/native-symbols).

#if !defined(GNND_SET)
#error "core/vec/vec.h is for files that are compiled once for each instruction set: *_loops.cc"
#endif

#define GNND_VEC_TEXT_OF(text) #text
#define GNND_VEC_TEXT(text) GNND_VEC_TEXT_OF(text)
// clang-format off: it would put blanks into the name.
#include GNND_VEC_TEXT(core/vec/GNND_SET.h)
// clang-format on
