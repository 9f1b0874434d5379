/*
 * What a killed mpirun or daemon leaves is removed, and nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "cluster/session.h"
#include "unit/test_main.h"

static char root[64];

static const char *in_root(const char *name)
{
	static char path[600];
	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void make(const char *name)
{
	assert_int_equal(ls_path_make(in_root(name)), LS_OK);
}

static int begin(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/lockstep-session.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	unsetenv("OMPI_MCA_orte_jobfam_session_dir");
	unsetenv("OMPI_MCA_orte_tmpdir_base");
	unsetenv(LS_SESSION_ENDED);
	return ls_path_remove_tree(root);
}

static void of_mpirun(void **state)
{
	char host[256] = "", session[400];
	(void)state;
	assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
	setenv("OMPI_MCA_orte_tmpdir_base", root, 1);
	snprintf(session, sizeof(session), "ompi.%s.%u/pid.4711/0", host, (unsigned)geteuid());
	make(session);
	snprintf(session, sizeof(session), "ompi.%s.%u/pid.4712/0", host, (unsigned)geteuid());
	make(session);
	ls_session_end_mpirun(4711);
	assert_true(ls_path_exists(in_root(session))); /* another one's */
	ls_session_end_mpirun(4712);
	assert_int_equal(rmdir(root), 0); /* nothing is left in it */
	assert_int_equal(mkdir(root, 0700), 0);
}

static void of_daemons(void **state)
{
	char own[4096];
	ls_sessions sessions = { 0 };
	(void)state;
	make("ompi.b.0/jf.5/0/1");
	make("ompi.b.0/jf.6/0/1");
	make("ompi.b.0/jf.7/0/1");
	make("else");
	setenv("OMPI_MCA_orte_jobfam_session_dir", in_root("else"), 1);
	ls_session_of_daemon(own, sizeof(own));
	assert_string_equal(own, ""); /* no name that we know */
	setenv("OMPI_MCA_orte_jobfam_session_dir", in_root("ompi.b.0/jf.7"), 1);
	ls_session_of_daemon(own, sizeof(own));
	assert_string_equal(own, in_root("ompi.b.0/jf.7"));
	ls_sessions_export(&sessions);
	ls_session_sweep(); /* no family is named */
	assert_true(ls_path_exists(in_root("ompi.b.0/jf.5")));
	ls_sessions_note(&sessions, 5);
	ls_sessions_note(&sessions, 7);
	ls_sessions_export(&sessions);
	assert_string_equal(getenv(LS_SESSION_ENDED), "5,7");
	ls_session_sweep();
	assert_false(ls_path_exists(in_root("ompi.b.0/jf.5")));
	assert_true(ls_path_exists(in_root("ompi.b.0/jf.6"))); /* of another job */
	assert_true(ls_path_exists(in_root("ompi.b.0/jf.7"))); /* its own */
	for (unsigned i = 0; i < 40; i++)                      /* the last few, in bounded room */
		ls_sessions_note(&sessions, 60000 + i);
	ls_sessions_export(&sessions);
	assert_null(strstr(getenv(LS_SESSION_ENDED), "60000"));
	assert_non_null(strstr(getenv(LS_SESSION_ENDED), "60039"));
}

static void no_links(void **state)
{
	char target[600];
	(void)state;
	make("ompi.b.0");
	make("precious");
	snprintf(target, sizeof(target), "%s", in_root("precious"));
	assert_int_equal(symlink(target, in_root("ompi.b.0/jf.9")), 0);
	ls_session_remove(in_root("ompi.b.0/jf.9"));
	assert_true(ls_path_exists(target));
}

TEST_MAIN_EACH(begin, end, of_mpirun, of_daemons, no_links)
