// Package pki issues the keys, certificates and kubeconfigs of workload clusters, and knows the Secrets in
// the management cluster that hold them.
//
// Keys are ECDSA P-256 unless the manager or a cluster chooses another algorithm: generating RSA keys would be the
// largest CPU cost of making a cluster. Those that are chosen are generated ahead of need (Keys). Names, keys and labels of the Secrets are part of the wire contract: whoever brings
// certificates of their own creates Secrets of these names before the cluster.
//
// What does not belong here: who creates which Secret when (the control plane and bootstrap providers), and
// the certificates of our own webhooks (provider/manager).
package pki
