// Package credentials creates the Secrets with the credentials of a control plane: CAs, service account key and admin
// kubeconfig.
//
//	certificates.go  creates the CAs and the service account key, unless users provide them
//	kubeconfig.go    creates the admin kubeconfig, and renews it before it expires and when the cluster CA changes
//	secrets.go       reads Secrets from the cache
//
// Names and formats of these Secrets are defined in sdk/pki. kubeadm issues the certificates on the machines.
package credentials
