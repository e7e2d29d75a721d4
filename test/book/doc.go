// Package book tests the documentation: it runs every block of commands, on a management cluster that the README starts, and
// checks every link.
//
// Blocks marked sh are run; other marks are for reading. Prose is not checked.
package book
