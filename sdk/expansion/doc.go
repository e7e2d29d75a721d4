// Package expansion limits what expands: YAML with aliases, and regular expressions with repetitions.
//
// An alias is a few bytes long and can expand to any size: converting a document of 1 MiB to JSON, as all
// Kubernetes libraries do, can take many gigabytes. YAML libraries limit the number
// of values, but not their size. Call Check before parsing YAML from users who could exhaust the
// memory of the process.
//
// Matching a regular expression takes time linear in the length of the text and in the size of the
// expression. A short expression can be large, because repetitions are expanded. RegexpSize measures it.
//
// What does not belong here: parsing documents, and the use of expressions.
package expansion
