# SPDX-License-Identifier: MIT
# The version stands once, in pirn/base.h.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../include/pirn/base.h pirn_version_lines
    REGEX "^#define PIRN_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
foreach(part MAJOR MINOR PATCH)
    string(REGEX MATCH "PIRN_VERSION_${part} ([0-9]+)" found
        "${pirn_version_lines}")
    set(PIRN_VERSION_${part} ${CMAKE_MATCH_1})
endforeach()
set(PIRN_VERSION
    ${PIRN_VERSION_MAJOR}.${PIRN_VERSION_MINOR}.${PIRN_VERSION_PATCH})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${CMAKE_CURRENT_LIST_DIR}/../include/pirn/base.h)
