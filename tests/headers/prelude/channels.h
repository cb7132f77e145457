/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/channels.md take for granted. */
struct page;
struct line {
    char text[80];
};
struct event {
    int kind;
};
struct status {
    bool ready;
};
int read_line(pirn_tcp *conn, struct line *line);
void show(const struct event *event);
int send_request(pirn_mpsc_sender *server, const char *name,
                 pirn_oneshot_sender *reply);
