/*
 * count.h - how many elements an array has.
 */
#ifndef LS_BASE_COUNT_H
#define LS_BASE_COUNT_H

#define LS_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
