// Package pki issues the keys, certificates and kubeconfigs of workload clusters, and defines the Secrets in the management cluster that
// contain them.
//
// Keys are ECDSA P-256 unless the manager or a cluster chooses another algorithm. RSA keys, which the managers of this project generate by
// default, take most of the CPU time of a new cluster: Keys generates these in advance. Names, keys and labels of the Secrets are part of
// the API: users who bring their own certificates create Secrets with these names before the cluster.
//
// What does not belong here: when each Secret is created (the control plane and bootstrap providers), and the certificates of our own
// webhooks (sdk/manager).
package pki
