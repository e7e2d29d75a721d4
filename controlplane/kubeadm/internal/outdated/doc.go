// Package outdated says why a control plane Machine differs from what its KubeadmControlPlane asks for, so that it has to
// be replaced.
//
// Only what cannot be changed on a running Machine counts. Labels, annotations and timeouts are changed in place, and
// replicas and strategies concern no single Machine. What is not known, because a Machine was not made by us or an
// object is gone, never counts as a difference: replacing Machines is expensive, and a guess must not start it.
package outdated
