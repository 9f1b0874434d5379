/*
 * link_rate.h - rates of links as people write them: "1gbit", "100 Mbps", "2.5gbit/s".
 */
#ifndef LS_BASE_LINK_RATE_H
#define LS_BASE_LINK_RATE_H

/* bit/s; 0 where the text says no rate. */
double ls_link_rate(const char *text);

#endif
