#include "tools/report/svg.h"

#include <string.h>

#include "tools/report/text.h"

void ls_svg_open(FILE *to, int height, const char *about)
{
	fprintf(to, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", LS_SVG_WIDTH, height);
	ls_write_html(to, about);
	fputs("\">\n", to);
}

void ls_svg_close(FILE *to)
{
	fputs("</svg>\n", to);
}

void ls_svg_line(FILE *to, const char *class, double x1, double y1, double x2, double y2)
{
	fprintf(to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2);
}

/* Bytes of the first `most` characters. */
static size_t cut_at(const char *text, size_t most)
{
	size_t bytes = 0, characters = 0;
	for (; text[bytes]; bytes++)
		if (((unsigned char)text[bytes] & 0xc0) != 0x80 && most > 0 && characters++ == most)
			break;
	return bytes;
}

void ls_svg_text(FILE *to, const char *class, double x, double y, ls_svg_anchor anchor, const char *text, size_t most)
{
	static const char *const anchors[] = { "start", "middle", "end" };
	char shown[1024];
	size_t bytes = cut_at(text, most);
	int cut = text[bytes] != '\0';

	if (bytes >= sizeof(shown) - 4)
		bytes = cut_at(text, 200), cut = 1;
	snprintf(shown, sizeof(shown), "%.*s%s", (int)bytes, text, cut ? "…" : "");
	fprintf(to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y, anchors[anchor]);
	ls_write_html(to, shown);
	fputs("</text>\n", to);
}

double ls_svg_text_width(const char *text, size_t most)
{
	size_t characters = 0;
	for (; *text; text++)
		characters += ((unsigned char)*text & 0xc0) != 0x80;
	return 6.7 * (double)(most > 0 && characters > most ? most + 1 : characters);
}

void ls_svg_title(FILE *to, const char *text)
{
	fputs("<title>", to);
	ls_write_html(to, text);
	fputs("</title>", to);
}

void ls_svg_stroke(FILE *to, const ls_curve *curve)
{
	static const char *const dashes[] = { "", "7 3", "2 3", "9 3 2 3" };
	const char *dash = curve->kind == LS_CURVE_PUBLISHED   ? "1.5 3.5"
			   : curve->kind == LS_CURVE_PREDICTED ? "6 4"
			   : curve->kind == LS_CURVE_IDEAL     ? "10 5"
							       : dashes[curve->style % 4];
	if (curve->kind == LS_CURVE_IDEAL)
		fputs("class=\"line ideal\"", to);
	else
		fprintf(to, "class=\"line c%d\"", curve->style % LS_SVG_COLOURS);
	if (*dash)
		fprintf(to, " stroke-dasharray=\"%s\"", dash);
}

/* Markers around (0, 0), of about the same visual size. */
static const char *const shapes[] = {
	"M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M-3.7-3.7h7.4v7.4h-7.4z", "M0-4.8L4.6 3.6H-4.6z",
	"M0-5.2L5.2 0L0 5.2L-5.2 0z",         "M0 4.8L4.6-3.6H-4.6z",    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
};

void ls_svg_marker(FILE *to, const ls_curve *curve, double x, double y)
{
	int hollow = curve->kind == LS_CURVE_PUBLISHED || curve->kind == LS_CURVE_SIMULATED;
	size_t shape = (size_t)curve->style % (sizeof(shapes) / sizeof(shapes[0]));
	fprintf(to, "<path class=\"mark c%d%s\" transform=\"translate(%.1f %.1f)\" d=\"%s\"/>",
		curve->style % LS_SVG_COLOURS, hollow ? " hollow" : "", x, y, shapes[shape]);
}
