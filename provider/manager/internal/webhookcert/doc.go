// Package webhookcert provides the certificate that a manager's webhook server shows to API servers, and makes the
// API server trust it.
//
// There are three sources: Directory (files that somebody else issues and renews, cert-manager for example), Keeper
// (issued by the manager itself and kept in a Secret) and Memory (for a manager without a namespace, whose webhooks
// no Service leads to).
//
// # How Keeper works
//
// A Secret in the manager's namespace holds a certificate authority with its key and a serving certificate. It is
// the only state, and every replica serves what it says: replicas need no leader for it. Whoever finds that the
// Secret should change writes it once; the API server lets one replica win and the others follow the winner through
// their watch. Between rotations, which are months apart, there is nothing to write and nothing to ask.
//
// Rotation overlaps. A new authority is first only trusted: it joins the CA bundle, and all configurations are told
// so. When the API servers have had time to notice (settleTime), it signs the serving certificate. When all replicas
// have had time to serve that, the old authority leaves the bundle. Two rules make this safe, whoever is killed when:
//
//   - a replica brings the API server up to what the Secret says before it changes the Secret;
//   - a serving certificate comes into the Secret only after its authority has been in the bundle for settleTime,
//     unless there is no valid one to serve meanwhile.
//
// A Secret that somebody else wrote (cert-manager, under the same name) is taken over by the same steps, because it
// is trusted but cannot sign: a rotation without an interruption. Deleting the Secret forces such a rotation.
//
// # What Keeper may do
//
// It needs, of the API server:
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
// The known library for this, open-policy-agent/cert-controller, needs the Secret to exist already and its files
// mounted, so that a start waits for the kubelet; it generates RSA keys; it replaces the authority without overlap;
// and it writes every configuration whenever it looks at them.
//
// Certificates of workload clusters do not belong here (provider/pki).
package webhookcert
