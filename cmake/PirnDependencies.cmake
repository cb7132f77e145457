# SPDX-License-Identifier: MIT
# What the library and its optional parts need from outside.  Sets PIRN_HAS_TESTS
# and PIRN_HAS_TOOL, and names the package when something is missing.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Decide about an optional part: `wanted` is AUTO, ON or OFF, `found` says
# whether its dependency is there.
function(pirn_decide out wanted found part package)
    set(decision OFF)
    if(wanted STREQUAL AUTO OR wanted)
        if(found)
            set(decision ON)
        elseif(wanted STREQUAL AUTO)
            message(STATUS "${part}: left out, needs ${package}")
        else()
            message(FATAL_ERROR "${part}: needs ${package}; `scripts/deps` "
                "installs what is missing")
        endif()
    endif()
    set(${out} ${decision} PARENT_SCOPE)
endfunction()

set(found_cmocka OFF)
if(PIRN_TEST_PLAIN)
    set(found_cmocka ON)
elseif(PIRN_TESTS)
    find_path(CMOCKA_INCLUDE_DIR cmocka.h)
    find_library(CMOCKA_LIBRARY cmocka)
    mark_as_advanced(CMOCKA_INCLUDE_DIR CMOCKA_LIBRARY)
    if(CMOCKA_INCLUDE_DIR AND CMOCKA_LIBRARY)
        set(found_cmocka ON)
    endif()
endif()
pirn_decide(PIRN_HAS_TESTS "${PIRN_TESTS}" ${found_cmocka} "tests"
    "cmocka (Debian: libcmocka-dev)")

# http-parser ships no pkg-config file on Debian.
set(found_http_parser OFF)
if(PIRN_TOOL)
    find_path(HTTP_PARSER_INCLUDE_DIR http_parser.h)
    find_library(HTTP_PARSER_LIBRARY http_parser)
    mark_as_advanced(HTTP_PARSER_INCLUDE_DIR HTTP_PARSER_LIBRARY)
    if(HTTP_PARSER_INCLUDE_DIR AND HTTP_PARSER_LIBRARY)
        set(found_http_parser ON)
        add_library(pirn_http_parser UNKNOWN IMPORTED)
        set_target_properties(pirn_http_parser PROPERTIES
            IMPORTED_LOCATION ${HTTP_PARSER_LIBRARY}
            INTERFACE_INCLUDE_DIRECTORIES ${HTTP_PARSER_INCLUDE_DIR})
    endif()
endif()
pirn_decide(PIRN_HAS_TOOL "${PIRN_TOOL}" ${found_http_parser} "pirn command"
    "http-parser (Debian: libhttp-parser-dev)")
