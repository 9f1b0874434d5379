/*
 * style.h - how the page looks, and the few lines of script that show a value beside the pointer.
 */
#ifndef LS_TOOLS_REPORT_STYLE_H
#define LS_TOOLS_REPORT_STYLE_H

extern const char ls_report_style[];   /* CSS */
extern const char ls_report_script[];  /* the page is whole without it: marks have a <title> */
extern const char ls_report_hatches[]; /* SVG patterns that bars are filled with */

#endif
