package kubeadm

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

const maxPort = 65535

// validateNumbers validates the numbers of a spec, which may be nil. Only those are rejected with which kubeadm fails on the machine.
func validateNumbers(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if spec == nil {
		return nil
	}
	at := path.Child("initConfiguration")
	all = append(all, validatePort(spec.InitConfiguration.LocalAPIEndpoint.BindPort, at.Child("localAPIEndpoint", "bindPort"))...)
	all = append(all, validateTimeout(spec.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds,
		at.Child("timeouts", "controlPlaneComponentHealthCheckSeconds"))...)
	at = path.Child("joinConfiguration")
	if c := spec.JoinConfiguration.ControlPlane; c != nil {
		all = append(all, validatePort(c.LocalAPIEndpoint.BindPort, at.Child("controlPlane", "localAPIEndpoint", "bindPort"))...)
	}
	timeouts := spec.JoinConfiguration.Timeouts
	all = append(all, validateTimeout(timeouts.ControlPlaneComponentHealthCheckSeconds,
		at.Child("timeouts", "controlPlaneComponentHealthCheckSeconds"))...)
	all = append(all, validateTimeout(timeouts.TLSBootstrapSeconds, at.Child("timeouts", "tlsBootstrapSeconds"))...)
	return all
}

// validatePort accepts zero, for which kubeadm uses its default.
func validatePort(port int32, path *field.Path) field.ErrorList {
	if port >= 0 && port <= maxPort {
		return nil
	}
	return field.ErrorList{field.Invalid(path, port, fmt.Sprintf("must be a port, at most %d", maxPort))}
}

func validateTimeout(seconds *int32, path *field.Path) field.ErrorList {
	if seconds == nil || *seconds >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *seconds, "must not be negative: kubeadm would give up at once")}
}
