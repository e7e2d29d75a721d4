// Package pictures draws the pictures of the book: from text files with the coordinates of boxes and the arrows between them, to SVG files
// that look the same, in light and dark.
//
// A picture is docs/book/pictures/NAME.txt, and becomes NAME.svg beside it. Each line of it is one of these; coordinates are in units of 10
// pixels, and texts in quotes:
//
//	title TEXT                                  what the picture shows
//	desc TEXT                                   the same in sentences, for readers of screens; lines are joined
//	size WIDTH HEIGHT
//	area X Y WIDTH HEIGHT KIND TEXT             a frame around boxes, with a heading
//	box ID X Y WIDTH HEIGHT KIND TITLE LINE...  a box; KIND is its color, see the style sheet; kind ask has round ends
//	text X Y ALIGN CLASS TEXT                   ALIGN is start, middle or end
//	line X1 Y1 X2 Y2                            a rule
//	arrow FROM TO OPTION... TEXT                FROM and TO are ID.SIDE, moved along the side with ID.SIDE+N. Options: dashed; via=N, where
//	                                            the part in the middle is; label=left or label=first, where the text is
//
// Drawing fails if a text does not fit, or if things overlap. The style sheet is docs/manual/assets/pictures.css: the site uses it as it
// is, and each file contains it with the colors of both themes, so that it can be read anywhere.
//
// How pages show pictures does not belong here (docs/manual), nor do pictures of terminals (package casts).
package pictures
