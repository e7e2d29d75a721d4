// Package recovery reconciles ControlPlaneRecoveries: each gives a control plane whose etcd has lost its quorum a new one, made of one
// member that survives.
//
// The steps, in order, and what each guarantees:
//
//	protect            the finalizer is in the API server before the control plane is held
//	current            the object is not an older one from the cache, once it was confirmed
//	control-plane      the Cluster, its KubeadmControlPlane and Machines were read from the API server
//	observe            the members are asked for their state, through their infrastructure providers, until the recovery is certain
//	decide             the recovery is confirmed, and nothing speaks against it
//	hold               the controller of the control plane changes nothing
//	check              the same as decide, by answers that are newer than the hold; from here on, the recovery is certain
//	fence              the lost machines do not run: their infrastructure is deleted, or the user vouches for it
//	force-new-cluster  the survivor's member is the only one of etcd
//	serve              the API server responds, and etcd agrees about its member
//	remove-nodes       the Nodes of the lost machines are deleted
//	release            the controller of the control plane continues: it scales up
//
// Deletion:
//
//	give-back  the control plane is given back, whatever was done
//
// Without a quorum, the workload cluster does not respond, so that members are asked, and the survivor is told, by annotations on the
// infrastructure machines. Providers that do not know them never answer, and nothing is changed then.
//
// Steps from hold on are marked in the status when they are complete, and each may be repeated. What is irreversible, fence and
// force-new-cluster, begins after the mark of check is in the API server. decide.go is a pure function.
//
// What does not belong here: how a command is carried out on a machine.
package recovery
