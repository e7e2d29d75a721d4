// Package kinds declares how the kinds of the API are converted between their versions: which fields are elsewhere, which have
// another form, and what identifies what. Fields with the same path and form need no rule, also if types have none of them yet.
//
// How an object is converted, and how nothing is lost, belongs in package lossless.
package kinds
