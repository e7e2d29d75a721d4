package journey

import "fmt"

// Plain is a Cluster named c without a class: in-memory machines, a KubeadmControlPlane c, and a MachineDeployment workers. Fields
// that are YAML are in flow style; empty: no fields.
type Plain struct {
	ControlPlanes, Workers int
	// ControlPlane is what the control plane consists of. Empty: a KubeadmControlPlane.
	ControlPlane plainControlPlane
	// Annotations and Infrastructure are annotations and spec of the InMemoryCluster, in YAML.
	Annotations, Infrastructure string
	// Endpoint is the endpoint of the Cluster, in YAML. Empty: that of the infrastructure.
	Endpoint string
	// ClusterConfiguration is that of kubeadm, in YAML.
	ClusterConfiguration string
}

// plainControlPlane is what a control plane consists of.
type plainControlPlane string

const (
	// hostedPlane is a FooControlPlane c: see HostedControlPlaneProvider.
	hostedPlane plainControlPlane = "FooControlPlane"
	// ownMachine is one Machine first, which the user creates.
	ownMachine plainControlPlane = "Machine"
)

// plainInfrastructure is the infrastructure of the Cluster: its annotations and spec.
const plainInfrastructure = `
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryCluster
metadata: {name: c, annotations: %s}
spec: %s
---
`

// plainCluster is the Cluster, with other fields of its spec.
const plainCluster = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c}
spec:
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryCluster, name: c}
%s---
`

// plainKubeadmPlane is a KubeadmControlPlane with its template: replicas and configuration.
const plainKubeadmPlane = `
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
`

const plainHostedPlane = `
apiVersion: thirdparty.example.com/v1beta1
kind: FooControlPlane
metadata: {name: c}
spec: {version: v1.30.5}
---
`

const plainOwnMachine = `
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryMachine
metadata: {name: first}
spec: {}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata: {name: first}
spec: {clusterConfiguration: {}, initConfiguration: {}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata: {name: first, labels: {cluster.x-k8s.io/control-plane: "", cluster.x-k8s.io/cluster-name: c}}
spec:
  clusterName: c
  version: v1.30.5
  bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: first}}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryMachine, name: first}
---
`

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
	endpoint := ""
	if p.Endpoint != "" {
		endpoint = "  controlPlaneEndpoint: " + flow(p.Endpoint) + "\n"
	}
	ref, plane := p.controlPlane()
	return fmt.Sprintf(plainInfrastructure, flow(p.Annotations), flow(p.Infrastructure)) + plane + fmt.Sprintf(plainCluster, endpoint+ref) +
		fmt.Sprintf(plainWorkers, p.Workers)
}

// controlPlane returns the objects of the control plane, and the field of the Cluster's spec that refers to them.
func (p Plain) controlPlane() (field, objects string) {
	const ref = "  controlPlaneRef: {apiVersion: %s, kind: %s, name: c}\n"
	switch p.ControlPlane {
	case ownMachine:
		return "", plainOwnMachine
	case hostedPlane:
		return fmt.Sprintf(ref, "thirdparty.example.com/v1beta1", hostedPlane), plainHostedPlane
	}
	return fmt.Sprintf(ref, "controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane"),
		fmt.Sprintf(plainKubeadmPlane, p.ControlPlanes, flow(p.ClusterConfiguration))
}

// flow returns fields in flow style.
func flow(fields string) string { return "{" + fields + "}" }

// Plain applies a manifest with a Cluster named c, and returns it.
func (w *World) Plain(manifest string) *Subject {
	w.t.Helper()
	before := w.Inventory()
	w.applyText(manifest)
	return &Subject{World: w, Name: "c", before: before}
}
