package journey

import "fmt"

// Plain is a Cluster named c without a class: in-memory machines, a KubeadmControlPlane c, and a MachineDeployment workers. Fields
// that are YAML are in flow style; empty: no fields.
type Plain struct {
	ControlPlanes, Workers int
	// Annotations and Infrastructure are annotations and spec of the InMemoryCluster, in YAML.
	Annotations, Infrastructure string
	// Endpoint is the endpoint of the Cluster, in YAML. Empty: that of the infrastructure.
	Endpoint string
	// ClusterConfiguration is that of kubeadm, in YAML.
	ClusterConfiguration string
}

// plainWorkers are workers of any control plane: a MachineDeployment with this number of replicas, and its templates.
const plainWorkers = `
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryMachineTemplate
metadata: {name: workers}
spec: {template: {spec: {}}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: workers}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {}}}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: workers}
spec:
  clusterName: c
  replicas: %d
  selector: {matchLabels: {}}
  template:
    spec:
      clusterName: c
      version: v1.30.5
      bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: workers}}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryMachineTemplate, name: workers}
`

// String returns the manifest.
func (p Plain) String() string {
	fields := func(yaml string) string {
		if yaml == "" {
			return "{}"
		}
		return "{" + yaml + "}"
	}
	endpoint := ""
	if p.Endpoint != "" {
		endpoint = "controlPlaneEndpoint: " + fields(p.Endpoint)
	}
	return fmt.Sprintf(`
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryCluster
metadata: {name: c, annotations: %s}
spec: %s
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryMachineTemplate
metadata: {name: c}
spec: {template: {spec: {}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: c}
spec:
  replicas: %d
  version: v1.30.5
  machineTemplate: {infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryMachineTemplate, name: c}}
  kubeadmConfigSpec: {clusterConfiguration: %s}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c}
spec:
  %s
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryCluster, name: c}
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: c}
---
`, fields(p.Annotations), fields(p.Infrastructure), p.ControlPlanes, fields(p.ClusterConfiguration), endpoint) + fmt.Sprintf(plainWorkers, p.Workers)
}

// Plain applies a manifest with a Cluster named c, and returns it.
func (w *World) Plain(manifest string) *Subject {
	w.t.Helper()
	before := w.Inventory()
	w.applyText(manifest)
	return &Subject{World: w, Name: "c", before: before}
}
