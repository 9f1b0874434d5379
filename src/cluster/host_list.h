/*
 * host_list.h - where the hosts of an elastic run are named: on the command line, in a file, or by a command.
 */
#ifndef LS_CLUSTER_HOST_LIST_H
#define LS_CLUSTER_HOST_LIST_H

#include <stdatomic.h>

#include <lockstep/launch.h>

/* Lines of text: "a:4", "a 4", "a slots=4" or several with commas; '#' begins a comment. One entry per host, as for
 * ls_hosts_parse(); `label` names the text in errors. LS_EINVALID where it names nobody. */
ls_status ls_host_list_parse(ls_host **out, size_t *count, const char *text, const char *label);

/* "a:4,b:4" and nothing else: hosts.c. */
ls_status ls_hosts_parse_list(ls_host **out, size_t *count, const char *text);

/* Of a file. */
ls_status ls_host_list_file(ls_host **out, size_t *count, const char *path);

/* The hosts as they are named now: "a:4,b:4", "@FILE", or with `discover` what this command prints within `seconds`; it
 * is run by the shell and ended after that, with all that it started. LS_EINTERRUPTED: it was ended before, because of
 * ls_launch_stop() or *cancel (NULL: nobody cancels). */
ls_status ls_host_list_read(ls_host **out, size_t *count, const char *hosts, const char *discover, double seconds,
			    const atomic_int *cancel);

#endif
