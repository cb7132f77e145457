/* SPDX-License-Identifier: MIT */
/* tools/pirn/commands.h - the subcommands; each takes its own name as argv[0]
 * and returns an exit status. */
#ifndef PIRN_TOOLS_COMMANDS_H
#define PIRN_TOOLS_COMMANDS_H

int serve_command(int argc, char **argv);
int load_command(int argc, char **argv);

#endif /* PIRN_TOOLS_COMMANDS_H */
