/*
 * style.h - the stylesheet of the page, and a short script that shows values in a tooltip.
 */
#ifndef LS_TOOLS_REPORT_STYLE_H
#define LS_TOOLS_REPORT_STYLE_H

extern const char ls_report_style[];   /* CSS */
extern const char ls_report_script[];  /* optional: marks also have a <title> */
extern const char ls_report_hatches[]; /* SVG patterns that bars are filled with */

#endif
