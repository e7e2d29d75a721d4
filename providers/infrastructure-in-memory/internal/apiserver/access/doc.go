// Package access decides what the users of a simulated API server may do, by the RBAC objects of its cluster.
//
// Who the user of a connection is, is not decided here.
package access

// Groups that every cluster has, and the prefix of the names of service accounts.
const (
	Masters       = "system:masters"
	Authenticated = "system:authenticated"
	accountPrefix = "system:serviceaccount:"
)
