package kubeadm

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
)

const maxPort = 65535

// validateNumbers validates the numbers of a spec, which may be nil. Only those are rejected with which kubeadm fails on the machine.
func validateNumbers(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if spec == nil {
		return nil
	}
	if c := spec.ClusterConfiguration; c != nil {
		all = append(all, validateTimeout(c.APIServer.TimeoutForControlPlane,
			path.Child("clusterConfiguration", "apiServer", "timeoutForControlPlane"))...)
	}
	if c := spec.InitConfiguration; c != nil {
		all = append(all, validatePort(c.LocalAPIEndpoint.BindPort, path.Child("initConfiguration", "localAPIEndpoint", "bindPort"))...)
	}
	if c := spec.JoinConfiguration; c != nil {
		at := path.Child("joinConfiguration")
		all = append(all, validateTimeout(c.Discovery.Timeout, at.Child("discovery", "timeout"))...)
		if c.ControlPlane != nil {
			all = append(all, validatePort(c.ControlPlane.LocalAPIEndpoint.BindPort,
				at.Child("controlPlane", "localAPIEndpoint", "bindPort"))...)
		}
	}
	return all
}

// validatePort accepts zero, for which kubeadm uses its default.
func validatePort(port int32, path *field.Path) field.ErrorList {
	if port >= 0 && port <= maxPort {
		return nil
	}
	return field.ErrorList{field.Invalid(path, port, fmt.Sprintf("must be a port, at most %d", maxPort))}
}

func validateTimeout(timeout *metav1.Duration, path *field.Path) field.ErrorList {
	if timeout == nil || timeout.Duration >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, timeout.Duration.String(), "must not be negative: kubeadm would give up at once")}
}
