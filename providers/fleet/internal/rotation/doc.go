// Package rotation reconciles CertificateAuthorityRotations: each replaces the certificate authorities of a Cluster and the key of its
// ServiceAccount tokens, in the steps TrustBoth, Reissue and DropOld.
//
// The steps of a reconcile, in order, and what each guarantees:
//
//	protect   the finalizer is in the API server before there is anything that depends on the object
//	read      what is decided on is read from the API server
//	admit     nothing has changed before all checks have passed, and the user has confirmed
//	hold      the controller of the control plane has answered, and no other operation begins
//	generate  the new keys are in a Secret of the rotation, all at once, before one of them is used
//	advance   carries out what package plan decides, until it has to wait
//	finish    the control plane is given back, and no keys are left in the Secret of the rotation
//
// Deletion:
//
//	withdraw  in TrustBoth, the Secrets have the old certificates again; later, the rotation is completed first
//
// Nothing depends on memory: which certificates a Secret has tells how far it is (package authority), and the times since when Machines
// have them are in the status before Machines are replaced.
package rotation
