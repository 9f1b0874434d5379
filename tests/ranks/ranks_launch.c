/*
 * ranks_launch PART HOSTS [TIMEOUT]: starts itself on the hosts by ls_launch() and says how that went, as the last line
 * of its output: "ok 0" or "io 137: message". t6100-launch.sh runs it. What a node does, by PART:
 *
 *   tell      say who it is, and end well
 *   exit      the last one fails with status 7, the others wait to be ended
 *   alike     all fail with the same words
 *   chatty    print lines that look like errors and are none, and end well ten seconds later
 *   kill      the last one is killed
 *   wait      end well when asked to stop: the first node is, and asks the others by a file (training does it over MPI)
 *   deaf      hear nothing
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/launch.h>

static int rank, size;

static int number(const char *name)
{
	const char *text = getenv(name);
	return text ? atoi(text) : -1;
}

static const char asked[] = "asked-to-stop";

static void on_stop(int signal)
{
	char text[] = "node 0 stopped\n", ended[] = "node 0 ended\n";
	text[5] = ended[5] = (char)('0' + rank);
	ssize_t ignored = signal == SIGUSR1 ? write(1, text, sizeof(text) - 1) : write(1, ended, sizeof(ended) - 1);
	(void)ignored;
	if (signal == SIGUSR1 && rank == 0)
		close(open(asked, O_WRONLY | O_CREAT, 0600));
	usleep(300000); /* a checkpoint takes its time */
	_exit(signal == SIGUSR1 ? 0 : 143);
}

static int wait_long(void)
{
	char up[] = "node-0-is-up"; /* and its handlers are in place */
	up[5] = (char)('0' + rank);
	close(open(up, O_WRONLY | O_CREAT, 0600));
	for (int i = 0; i < 600; i++) {
		usleep(100000);
		if (rank > 0 && !access(asked, F_OK))
			raise(SIGUSR1);
	}
	return 9;
}

static int tell(char **argv)
{
	char host[256] = "", directory[4096] = "";
	gethostname(host, sizeof(host) - 1);
	if (!getcwd(directory, sizeof(directory)))
		return 9;
	const char *devices = getenv(LS_DEVICES_PER_NODE), *word = getenv("LOCKSTEP_WORD");
	printf("node %d of %d on %s devices %s word %s in %s last '%s'\n", rank, size, host, devices ? devices : "none",
	       word ? word : "none", directory, argv[4] ? argv[4] : "");
	return getchar() == EOF ? 0 : 9;
}

static int node(char **argv)
{
	const char *part = argv[1];
	int last = rank == size - 1, deaf = !strcmp(part, "deaf");
	signal(SIGUSR1, deaf ? SIG_IGN : on_stop);
	signal(SIGTERM, deaf ? SIG_IGN : on_stop);
	if (strcmp(part, "silent"))
		ls_launch_report();
	if (!strcmp(part, "tell"))
		return tell(argv);
	if (!strcmp(part, "alike")) {
		ls_launch_report_end(LS_EIO, "lockstep: what all say");
		fprintf(stderr, "node %d says\n", rank);
		return 3;
	}
	if (!strcmp(part, "exit") && last) {
		ls_launch_report_end(LS_EIO, "lockstep: I failed");
		return 7;
	}
	if (!strcmp(part, "chatty")) {
		fprintf(stderr, "lockstep-foo: hello\nlockstep: all is well\n");
		sleep(10);
		return 0;
	}
	if (!strcmp(part, "kill") && last)
		raise(SIGKILL);
	return wait_long();
}

static void on_signal(int signal)
{
	(void)signal;
	ls_launch_stop();
}

int main(int argc, char **argv)
{
	rank = number("OMPI_COMM_WORLD_RANK");
	size = number("OMPI_COMM_WORLD_SIZE");
	if (argc < 3)
		return 2;
	if (ls_launched_by_us())
		return node(argv);
	ls_launch_options options = LS_LAUNCH_OPTIONS_INIT;
	options.hosts = argv[2];
	options.argv = argv;
	if (argc > 3)
		options.timeout = atof(argv[3]);
	signal(SIGTERM, on_signal);
	int code = -1;
	ls_status status = ls_launch(&options, &code);
	printf("%s %d%s%s\n", ls_status_name(status), code, status ? ": " : "", status ? ls_last_error() : "");
	return 0;
}
