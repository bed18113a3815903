#pragma once

// Include it last where headers of torch come after doctest's: torch has a CHECK, too, which ends
// the program instead of the test's.

#undef CHECK
#define CHECK(...) DOCTEST_CHECK(__VA_ARGS__)
