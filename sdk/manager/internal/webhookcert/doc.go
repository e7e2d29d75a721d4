// Package webhookcert provides the certificate of a manager's webhook server, and makes API servers trust it.
//
// There are three sources: Directory (files that are issued and renewed elsewhere, for example by cert-manager), Keeper (issued by the
// manager itself and stored in a Secret) and Memory (for a manager without a namespace, whose webhooks have no Service).
//
// # How Keeper works
//
// A Secret in the manager's namespace contains a CA with its key, and a serving certificate. It is the only state, and every replica
// serves its content: no leader is needed. Any replica that finds that the Secret must change writes it once; with optimistic locking,
// one replica wins, and the others follow through their watch. Between rotations, which are months apart, there are no requests.
//
// Rotations overlap. A new CA is only trusted at first: it is added to the CA bundle in all webhook configurations. When API servers have
// had time to observe it (propagationTime), it signs the serving certificate. When all replicas have had time to serve that, the old CA
// is removed from the bundle. Two rules make this safe, even if replicas are killed at any time:
//
//   - a replica updates the configurations according to the Secret before it changes the Secret;
//   - a serving certificate is only added to the Secret after its CA has been in the bundle for propagationTime, unless there is
//     no other valid one.
//
// A Secret that was written by another client (for example by cert-manager, under the same name) is taken over by the same steps, because
// its CA is trusted but cannot sign: a rotation without an interruption. Deleting the Secret forces such a rotation.
//
// # Permissions
//
// Keeper requires:
//
//	Role in the manager's namespace
//	- secrets: create
//	- secrets, resourceNames [<service>-cert]: get, list, watch, update
//	ClusterRole
//	- admissionregistration.k8s.io validatingwebhookconfigurations, mutatingwebhookconfigurations: list, watch
//	- the same, resourceNames [the component's own configurations]: patch
//	only when the component converts versions of its own kinds:
//	- apiextensions.k8s.io customresourcedefinitions: list, watch
//	- the same, resourceNames [the component's own definitions]: patch
//
// # Why not a library
//
// The well-known library, open-policy-agent/cert-controller, requires the Secret to exist and its files to be mounted, so that the start
// waits for the kubelet; it generates RSA keys; it replaces the CA without overlap; and it writes every configuration whenever it
// reconciles.
//
// Certificates of workload clusters do not belong here (sdk/pki).
package webhookcert
