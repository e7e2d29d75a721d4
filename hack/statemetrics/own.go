package statemetrics

import (
	"maps"
	"strings"
)

// own has the labels of the metric "info", and additional metrics of a kind.
type own struct {
	info    map[string][]string
	metrics []Metric
}

// at splits a dotted path.
func at(path string) []string { return strings.Split(path, ".") }

// number returns a metric of a number field.
func number(name, help, path string) Metric {
	return Metric{Name: name, Help: help, Each: Each{Type: "Gauge", Gauge: &Gauge{Path: at(path)}}}
}

// flag returns a metric of a boolean field. Missing is false.
func flag(name, help, path string) Metric {
	return Metric{Name: name, Help: help, Each: Each{Type: "Gauge", Gauge: &Gauge{Path: at(path), NilIsZero: true}}}
}

// phases returns a metric of status.phase.
func phases(list ...string) Metric {
	return Metric{Name: "status_phase", Help: "Phase.", Each: Each{
		Type: "StateSet", StateSet: &StateSet{Path: at("status.phase"), LabelName: "phase", List: list},
	}}
}

// counters returns metrics of replica counters in status.
func counters(fields ...string) []Metric {
	help := map[string]string{
		"status_replicas": "Number of Machines.", "status_replicas_ready": "Number of Machines whose Node is ready.",
		"status_replicas_available":     "Number of Machines whose Node has been ready for minReadySeconds.",
		"status_replicas_unavailable":   "Number of Machines that are missing or unavailable.",
		"status_replicas_updated":       "Number of Machines that match the current template.",
		"status_replicas_fully_labeled": "Number of Machines with the labels of the template.",
	}
	path := map[string]string{
		"status_replicas": "status.replicas", "status_replicas_ready": "status.readyReplicas",
		"status_replicas_available": "status.availableReplicas", "status_replicas_unavailable": "status.unavailableReplicas",
		"status_replicas_updated": "status.updatedReplicas", "status_replicas_fully_labeled": "status.fullyLabeledReplicas",
	}
	var out []Metric
	for _, name := range fields {
		out = append(out, number(name, help[name], path[name]))
	}
	return out
}

// reference returns labels with kind and name of a reference.
func reference(label, path string) map[string][]string {
	return map[string][]string{label + "_reference_kind": at(path + ".kind"), label + "_reference_name": at(path + ".name")}
}

func join(all ...map[string][]string) map[string][]string {
	out := map[string][]string{}
	for _, labels := range all {
		maps.Copy(out, labels)
	}
	return out
}

// machineTemplate returns the labels of kinds that create Machines from a template.
func machineTemplate() map[string][]string {
	return join(
		map[string][]string{"version": at("spec.template.spec.version")},
		reference("bootstrap", "spec.template.spec.bootstrap.configRef"),
		reference("infrastructure", "spec.template.spec.infrastructureRef"),
	)
}

// owns returns the specific labels and metrics of kinds.
func owns() map[string]own {
	replicas := number("spec_replicas", "Desired number of Machines.", "spec.replicas")
	return map[string]own{
		"Cluster": {
			info: join(map[string][]string{
				"topology_version": at("spec.topology.version"), "topology_class": at("spec.topology.class"),
				"control_plane_endpoint_host": at("spec.controlPlaneEndpoint.host"),
				"control_plane_endpoint_port": at("spec.controlPlaneEndpoint.port"),
			}, reference("control_plane", "spec.controlPlaneRef"), reference("infrastructure", "spec.infrastructureRef")),
			metrics: []Metric{
				flag("spec_paused", "Whether the Cluster and its objects are paused.", "spec.paused"),
				phases("Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"),
			},
		},
		"KubeadmControlPlane": {
			info: map[string][]string{"version": at("spec.version")},
			metrics: append([]Metric{
				replicas,
				number("spec_strategy_rollingupdate_max_surge", "Maximum number of additional Machines during a rollout.",
					"spec.rolloutStrategy.rollingUpdate.maxSurge"),
			}, counters("status_replicas", "status_replicas_ready", "status_replicas_unavailable", "status_replicas_updated")...),
		},
		"Machine": machine(),
		"MachineDeployment": {
			info: machineTemplate(),
			metrics: append([]Metric{
				flag("spec_paused", "Whether the MachineDeployment is paused.", "spec.paused"), replicas,
				number("spec_strategy_rollingupdate_max_surge", "Maximum number or percentage of additional Machines during a rollout.",
					"spec.strategy.rollingUpdate.maxSurge"),
				number("spec_strategy_rollingupdate_max_unavailable", "Maximum number or percentage of unavailable Machines during a rollout.",
					"spec.strategy.rollingUpdate.maxUnavailable"),
				phases("ScalingUp", "ScalingDown", "Running", "Failed", "Unknown"),
			}, counters("status_replicas", "status_replicas_available", "status_replicas_ready", "status_replicas_unavailable",
				"status_replicas_updated")...),
		},
		"MachineSet": {
			info: machineTemplate(),
			metrics: append([]Metric{replicas}, counters("status_replicas", "status_replicas_available", "status_replicas_fully_labeled",
				"status_replicas_ready")...),
		},
		"MachinePool": {
			info: join(map[string][]string{
				"version": at("spec.template.spec.version"), "failure_domain": at("spec.template.spec.failureDomain"),
			}, reference("bootstrap_configuration", "spec.template.spec.bootstrap.configRef"),
				reference("infrastructure", "spec.template.spec.infrastructureRef")),
			metrics: append([]Metric{
				replicas,
				phases("Pending", "Provisioning", "Provisioned", "Running", "ScalingUp", "ScalingDown", "Scaling", "Deleting", "Failed", "Unknown"),
			}, counters("status_replicas", "status_replicas_ready", "status_replicas_available", "status_replicas_unavailable")...),
		},
		"MachineHealthCheck": {metrics: []Metric{
			number("status_current_healthy", "Number of healthy Machines.", "status.currentHealthy"),
			number("status_expected_machines", "Number of Machines that the MachineHealthCheck selects.", "status.expectedMachines"),
			number("status_remediations_allowed", "Number of Machines that may currently be remediated.", "status.remediationsAllowed"),
		}},
	}
}

func machine() own {
	return own{
		info: join(map[string][]string{
			"container_runtime_version": at("status.nodeInfo.containerRuntimeVersion"), "failure_domain": at("spec.failureDomain"),
			"kernel_version": at("status.nodeInfo.kernelVersion"), "kubelet_version": at("status.nodeInfo.kubeletVersion"),
			"kube_proxy_version": at("status.nodeInfo.kubeProxyVersion"), "os_image": at("status.nodeInfo.osImage"),
			"provider_id": at("spec.providerID"), "version": at("spec.version"),
			"control_plane_name": {"metadata", "labels", "cluster.x-k8s.io/control-plane-name"},
		}, reference("bootstrap", "spec.bootstrap.configRef"), reference("infrastructure", "spec.infrastructureRef")),
		metrics: []Metric{
			{Name: "addresses", Help: "Addresses of the Machine.", Each: Each{Type: "Info", Info: &Info{
				Path: at("status.addresses"), LabelsFromPath: map[string][]string{"type": {"type"}, "address": {"address"}},
			}}},
			number("status_certificatesexpirydate", "Expiry time of the certificates, in seconds since 1970.", "status.certificatesExpiryDate"),
			{Name: "status_noderef", Help: "Node of the Machine.", Each: Each{Type: "Info", Info: &Info{
				LabelsFromPath: map[string][]string{"node_name": at("status.nodeRef.name"), "node_uid": at("status.nodeRef.uid")},
			}}},
			phases("Pending", "Provisioning", "Provisioned", "Running", "Deleting", "Deleted", "Failed", "Unknown"),
		},
	}
}
