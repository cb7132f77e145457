# SPDX-License-Identifier: MIT
# How every target of this project is compiled.  Nothing here reaches a program
# that only links the library.
include(CheckCCompilerFlag)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_compile_options($<$<COMPILE_LANGUAGE:C>:-Wall>)
foreach(warning extra conversion shadow strict-prototypes missing-prototypes
        undef vla switch-enum)
    add_compile_options($<$<COMPILE_LANGUAGE:C>:-W${warning}>)
endforeach()
# Never mere warnings: the program is wrong.
foreach(error implicit-function-declaration int-conversion
        incompatible-pointer-types return-type)
    add_compile_options($<$<COMPILE_LANGUAGE:C>:-Werror=${error}>)
endforeach()
if(PIRN_WERROR)
    add_compile_options($<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()

# A frame larger than a page must not step over the guard below a stack.
check_c_compiler_flag(-fstack-clash-protection PIRN_HAS_STACK_CLASH)
if(PIRN_HAS_STACK_CLASH)
    add_compile_options(
        $<$<COMPILE_LANGUAGE:C>:-fstack-clash-protection>)
endif()

# The library tells Valgrind of its stacks where the header is found.  Asked here,
# so that it is built again when the header comes later.
find_path(VALGRIND_INCLUDE_DIR valgrind/valgrind.h)
mark_as_advanced(VALGRIND_INCLUDE_DIR)
if(NOT VALGRIND_INCLUDE_DIR)
    add_compile_definitions(PIRN_NO_VALGRIND)
endif()

if(PIRN_DEBUG)
    add_compile_definitions(PIRN_DEBUG)
endif()

# See src/sys/hostile.c and src/base/poison.h.
if(PIRN_HOSTILE)
    add_compile_definitions(PIRN_HOSTILE)
endif()

# Small enough to be exhausted: two generation bits, one spin before a lock waits,
# rings of four, caches of a few cells, one waker at a time.
if(PIRN_MODEL)
    add_compile_definitions(PIRN_MODEL PIRN__GENERATION_BITS=2
        PIRN__LOCK_SPINS=1 PIRN__RING_SIZE=4 PIRN__SLAB_REFILL=2
        PIRN__WAKE_BATCH=1 PIRN__CHANNEL_BLOCK_MESSAGES=2
        PIRN__HOOK_GATES=1 PIRN__OUTSIDES=2 PIRN__SLAB_LARGE=1)
    include_directories(${PROJECT_SOURCE_DIR}/tests)
endif()

if(PIRN_SANITIZE)
    add_compile_options(-fsanitize=${PIRN_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${PIRN_SANITIZE})
    # gcc's flow analysis is unreliable in instrumented code.
    if(CMAKE_C_COMPILER_ID STREQUAL GNU)
        add_compile_options(
            $<$<COMPILE_LANGUAGE:C>:-Wno-maybe-uninitialized>)
    endif()
endif()
