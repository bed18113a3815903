# Writes a line with the digest of each input that decides bits into OUT/build_id.txt, and the
# digest of that text as the build id into OUT/build_id.cc.
#   cmake -DROOT=<repository> -DOPTIONS=<file> -DOUT=<folder> -P write_build_id.cmake
# Everything under native/ counts except tests; comments, too, which costs only a rebuild.
file(GLOB_RECURSE sources RELATIVE ${ROOT} LIST_DIRECTORIES false ${ROOT}/native/*)
list(FILTER sources EXCLUDE REGEX "^native/test/")
list(APPEND sources CMakeLists.txt)
list(SORT sources)
set(text "")
foreach(source IN LISTS sources)
  file(SHA256 ${ROOT}/${source} digest)
  string(APPEND text "${digest}  ${source}\n")
endforeach()
file(READ ${OPTIONS} options)
string(APPEND text "${options}")
string(SHA256 digest "${text}")
string(SUBSTRING ${digest} 0 32 id)
file(WRITE ${OUT}/build_id.txt "${text}")
file(WRITE ${OUT}/build_id.cc "#include \"core/ledger/build_id.h\"\n
namespace gnnd {\nconst char kBuildId[kBuildIdBytes] = \"${id}\";\n}  // namespace gnnd\n")
