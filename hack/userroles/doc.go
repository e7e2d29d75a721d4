// Package userroles writes the ClusterRoles with which the users of a namespace work: providers/*/config/rbac/users.yaml.
//
// They add the kinds of each component to the roles view, edit and admin of Kubernetes. Which kinds there are derives from the
// CustomResourceDefinitions; what edit may do, and which components only administrators of the management cluster configure, is in a
// table here. Permissions of managers do not belong here: they are written by hand.
package userroles
