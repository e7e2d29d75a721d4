// Package casts records commands in a terminal, on a real management cluster, as pictures of the book that move.
//
//	casts.go     the commands of each cast
//	cluster.go   the management cluster that they run on
//	record.go    runs commands in a terminal, and takes frames of it
//	terminal.go  reads a frame from the terminal: texts and their colors
//	draw.go      draws frames as SVG
//
// How long a frame is shown does not depend on the machine, and generated names are always the same ones, so that new recordings differ
// where the output does. Ages and the number of frames may differ.
//
// Pictures of other things do not belong here (package pictures).
package casts
