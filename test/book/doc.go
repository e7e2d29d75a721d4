// Package book keeps the documents for users true: its tests run every block of commands that a page shows, on a
// management cluster that the first page starts, and follow every link.
//
// A block marked sh is run; other marks are for reading. What a page says in prose is checked by nobody but its readers.
package book
