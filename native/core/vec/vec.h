#pragma once

// Thin vectors of logical width, for loops that are written once and compiled once for each
// instruction set. Only files named *_loops.cc include this; native/cmake/loops.cmake compiles them
// with GNND_SET=plain, avx2, avx512 or neon and that set's options.
//
// Widths are logical: 16 elements (Lanes16), or eight where a sum over lanes decides bits (Eight).
// The number of registers depends on the set, but the bits do not: every operation works within a
// lane, or on integers.
//
// Arithmetic is the compiler's own on its vectors (lanes.h). A set's header adds what compilers do
// not find: the full product of 32-bit numbers, masks, compression, float16, and loads and stores
// of the first few lanes.
//
// A loops file puts everything into namespace gnnd::GNND_SET, and there into an anonymous
// namespace, except its table of functions (dispatch.h). So code that was compiled for one set
// cannot be linked for another: it exports no weak symbol (test/process/native-symbols).

#if !defined(GNND_SET)
#error "core/vec/vec.h is for files that are compiled once for each instruction set: *_loops.cc"
#endif

#define GNND_VEC_TEXT_OF(text) #text
#define GNND_VEC_TEXT(text) GNND_VEC_TEXT_OF(text)
// clang-format off: it would put blanks into the name.
#include GNND_VEC_TEXT(core/vec/GNND_SET.h)
// clang-format on
