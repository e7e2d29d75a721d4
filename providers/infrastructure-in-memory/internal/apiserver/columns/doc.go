// Package columns represents objects as tables, with the columns of "kubectl get", and as metadata only.
package columns
