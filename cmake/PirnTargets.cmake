# SPDX-License-Identifier: MIT
# The targets, and the functions with which each folder adds its files.
#
#   pirn, pirn_static   what is installed; the same objects in both
#   pirn_testing        those objects with their internal names in reach, and
#                       the test engine
#   pirn_product        all that `make` builds

add_library(pirn_objects OBJECT)
target_include_directories(pirn_objects PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
set_target_properties(pirn_objects PROPERTIES C_VISIBILITY_PRESET hidden)
target_link_libraries(pirn_objects PRIVATE Threads::Threads)
# What the library prints names its files, not where they were built.
check_c_compiler_flag(-fmacro-prefix-map=a=b PIRN_HAS_PREFIX_MAP)
if(PIRN_HAS_PREFIX_MAP)
    target_compile_options(pirn_objects PRIVATE
        $<$<COMPILE_LANGUAGE:C>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
endif()

add_library(pirn SHARED $<TARGET_OBJECTS:pirn_objects>)
# No promise of layout between minor versions: the name changes with each.
set_target_properties(pirn PROPERTIES
    VERSION ${PIRN_VERSION}
    SOVERSION ${PIRN_VERSION_MAJOR}.${PIRN_VERSION_MINOR}
    LINKER_LANGUAGE C)
target_link_options(pirn PRIVATE -Wl,-Bsymbolic-functions)
if(NOT PIRN_SANITIZE)   # whose runtime comes with the program
    target_link_options(pirn PRIVATE -Wl,--no-undefined)
endif()

add_library(pirn_static STATIC $<TARGET_OBJECTS:pirn_objects>)
set_target_properties(pirn_static PROPERTIES OUTPUT_NAME pirn LINKER_LANGUAGE C)

foreach(library pirn pirn_static)
    target_include_directories(${library} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
target_link_libraries(pirn PRIVATE Threads::Threads)
target_link_libraries(pirn_static PUBLIC Threads::Threads)
add_library(Pirn::pirn ALIAS pirn)
add_library(Pirn::pirn_static ALIAS pirn_static)

add_custom_target(pirn_product)
add_dependencies(pirn_product pirn pirn_static)

if(PIRN_HAS_TESTS)
    add_library(pirn_testing STATIC $<TARGET_OBJECTS:pirn_objects>
        ${PROJECT_SOURCE_DIR}/tests/engine/test_main.c)
    target_include_directories(pirn_testing PUBLIC
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
        ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(pirn_testing PUBLIC Threads::Threads)
    if(PIRN_TEST_PLAIN)
        target_compile_definitions(pirn_testing PRIVATE PIRN_TEST_PLAIN)
    else()
        target_include_directories(pirn_testing PRIVATE ${CMOCKA_INCLUDE_DIR})
        target_link_libraries(pirn_testing PUBLIC ${CMOCKA_LIBRARY})
    endif()
    # What a cross build runs under the emulator.
    add_custom_target(pirn_cross_tests)
endif()

# In the hostile build: tests that count the bytes of each transfer keep a kind
# network; those that count turns, are about the system itself, or must be ready
# in so many milliseconds keep a kind system.  See src/sys/hostile.c.
set(PIRN_HOSTILE_WAITS
    "^(net/(connect|stream)_test|conformance/net|regress/fork|sweep/cancel_net)$")
set(PIRN_HOSTILE_MEMORY
    "^(sys/linux_test|reactor/hold_test|regress/pool_shutdown|serve/.*)$")

# How hostile `test` may be, which runs the program of `name`.
function(pirn_spare test name)
    foreach(part WAITS MEMORY)
        if(PIRN_HOSTILE AND ${name} MATCHES "${PIRN_HOSTILE_${part}}")
            string(TOLOWER ${part} part)
            set_property(TEST ${test} APPEND PROPERTY
                ENVIRONMENT PIRN_HOSTILE=${part})
        endif()
    endforeach()
endfunction()

# Tests of what depends on the processor; they run emulated as well.
set(PIRN_CROSS_TESTS "^(sys/switch_test|fiber/.*_test)$")

# The explorer stands in for the thread-local and the heap, and nothing is
# installed.
if(PIRN_MODEL)
    set_target_properties(pirn PROPERTIES EXCLUDE_FROM_ALL ON)
    foreach(part explore explore_heap explore_memory explore_plain
            explore_report explore_snapshot explore_sys)
        target_sources(pirn_testing PRIVATE
            ${PROJECT_SOURCE_DIR}/tests/engine/${part}.c)
    endforeach()
endif()

# Folders whose plain reads and writes the explorer sees: the compiler calls the
# hooks of ThreadSanitizer, which are the explorer's own.  What the C library
# does with memory goes through the explorer as well.
set(PIRN_MODEL_SEEN base task time reactor sched fiber sync channel scope stream
    blocking)
set(PIRN_MODEL_HOOKS -fsanitize=thread
    -Dmemcpy=explore_memcpy -Dmemset=explore_memset)

# Sources of the library, from the folder's CMakeLists.txt.
function(pirn_sources)
    get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    foreach(source ${ARGN})
        set(path ${CMAKE_CURRENT_SOURCE_DIR}/${source})
        if(PIRN_MODEL AND source MATCHES "^(tls|heap).c$")
            continue()
        endif()
        target_sources(pirn_objects PRIVATE ${path})
        if(PIRN_MODEL AND folder IN_LIST PIRN_MODEL_SEEN)
            set_source_files_properties(${path} TARGET_DIRECTORY pirn_objects
                PROPERTIES COMPILE_OPTIONS "${PIRN_MODEL_HOOKS}")
        endif()
    endforeach()
endfunction()

# Test programs: one per file, named folder/file, labelled `unit` beside the
# sources and with the folder's name under tests/.
function(pirn_tests)
    if(PIRN_HAS_TESTS AND NOT PIRN_MODEL)
        pirn_test_programs(${ARGN})
    endif()
endfunction()

# Model tests, in the model build only.
function(pirn_models)
    if(PIRN_HAS_TESTS AND PIRN_MODEL)
        pirn_test_programs(${ARGN})
    endif()
endfunction()

function(pirn_test_programs)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    set(label unit)
    if(folder MATCHES "^tests/([^/]*)")
        set(label ${CMAKE_MATCH_1})
    endif()
    string(REGEX REPLACE "^(src|tests)/" "" folder ${folder})
    foreach(source ${ARGN})
        string(REGEX REPLACE "\\.c$" "" stem ${source})
        string(REPLACE / _ target ${folder}_${stem})
        add_executable(${target} ${source})
        target_link_libraries(${target} PRIVATE pirn_testing)
        # backtrace() and dladdr() can name what stands in the program.
        set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
        add_test(NAME ${folder}/${stem} COMMAND ${target})
        set_tests_properties(${folder}/${stem} PROPERTIES LABELS ${label})
        pirn_spare(${folder}/${stem} ${folder}/${stem})
        if(label STREQUAL unit)
            set_property(GLOBAL APPEND PROPERTY PIRN_UNIT_TESTS ${target})
        endif()
        if(label STREQUAL stress)
            set_tests_properties(${folder}/${stem} PROPERTIES RUN_SERIAL ON)
        endif()
        if("${folder}/${stem}" MATCHES "${PIRN_CROSS_TESTS}")
            add_dependencies(pirn_cross_tests ${target})
            set_tests_properties(${folder}/${stem} PROPERTIES
                LABELS "${label};cross")
        endif()
    endforeach()
endfunction()

# The same test programs once more, with pools of another kind wherever they do
# not say which.  After pirn_tests().
function(pirn_tests_on_pool kind)
    if(NOT PIRN_HAS_TESTS OR PIRN_MODEL)
        return()
    endif()
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    string(REGEX REPLACE "^(src|tests)/" "" folder ${folder})
    foreach(source ${ARGN})
        string(REGEX REPLACE "\\.c$" "" stem ${source})
        string(REPLACE / _ target ${folder}_${stem})
        set(test ${folder}/${stem}_${kind})
        add_test(NAME ${test} COMMAND ${target})
        get_test_property(${folder}/${stem} LABELS labels)
        set_tests_properties(${test} PROPERTIES LABELS "${labels}"
            ENVIRONMENT PIRN_POOL=${kind})
        pirn_spare(${test} ${folder}/${stem})
        if("stress" IN_LIST labels)
            set_tests_properties(${test} PROPERTIES RUN_SERIAL ON)
        endif()
    endforeach()
endfunction()

# An example: built against the public headers only, and run by the tests with
# the given arguments.
function(pirn_example source)
    string(REGEX REPLACE "\\.c$" "" stem ${source})
    add_executable(example_${stem} ${source})
    target_link_libraries(example_${stem} PRIVATE pirn_static)
    set_target_properties(example_${stem} PROPERTIES OUTPUT_NAME ${stem})
    if(PIRN_HAS_TESTS)
        add_test(NAME examples/${stem} COMMAND example_${stem} ${ARGN})
        set_tests_properties(examples/${stem} PROPERTIES LABELS examples)
    else()
        set_target_properties(example_${stem} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
endfunction()

# Benchmark programs, with the library's internals in reach; built by
# `make bench` only.
add_custom_target(pirn_benches)
function(pirn_benches)
    foreach(source ${ARGN})
        string(REGEX REPLACE "\\.c$" "" stem ${source})
        string(REPLACE / _ target ${stem})
        add_executable(${target} EXCLUDE_FROM_ALL ${source})
        target_include_directories(${target} PRIVATE
            ${PROJECT_SOURCE_DIR}/src)
        target_link_libraries(${target} PRIVATE pirn_static)
        add_dependencies(pirn_benches ${target})
    endforeach()
endfunction()
