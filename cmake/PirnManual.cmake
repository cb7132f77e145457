# SPDX-License-Identifier: MIT
# The manual pages, made from the headers where there is a python3 to do it.
# The target pirn_man builds them into man/ of the build folder.
find_program(PIRN_PYTHON python3)
mark_as_advanced(PIRN_PYTHON)
if(PIRN_PYTHON)
    set(pirn_man_dir ${PROJECT_BINARY_DIR}/man)
    file(GLOB pirn_man_sources CONFIGURE_DEPENDS
        ${PROJECT_SOURCE_DIR}/include/pirn/*.h
        ${PROJECT_SOURCE_DIR}/tools/man
        ${PROJECT_SOURCE_DIR}/tools/man.d/*.py)
    add_custom_command(OUTPUT ${pirn_man_dir}/man7/pirn.7
        COMMAND ${PIRN_PYTHON} ${PROJECT_SOURCE_DIR}/tools/man ${pirn_man_dir}
        DEPENDS ${pirn_man_sources} ${PROJECT_SOURCE_DIR}/src/base/error.h
        COMMENT "Manual pages" VERBATIM)
    add_custom_target(pirn_man ALL DEPENDS ${pirn_man_dir}/man7/pirn.7)
    add_dependencies(pirn_product pirn_man)
else()
    message(STATUS "manual pages: left out, needs python3")
endif()
