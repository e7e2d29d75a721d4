package journey

import (
	"path/filepath"
	"slices"
)

// providerRelease is how a release of an infrastructure provider of another project is received.
type providerRelease struct {
	// version is that of the release, and namespace where its components are.
	version, namespace string
	// rejected has a part of the error of each template that is not accepted.
	rejected map[string]string
	// contract is that of the release series, and speaks has the versions of Cluster API in which templates are.
	contract, speaks string
	// whole is a template whose Cluster becomes ready, is upgraded and moved, and class another one with a class. Clusters of the others
	// become ready in soak tests, except those with Windows, because simulated machines run Linux.
	whole, class string
	// always is set if it is tested with each change, and not only in soak tests: the definitions of all six keep an API server busy for
	// minutes. One has each contract, and one has classes.
	always bool
	// variables are the values of the required variables, of components and templates.
	variables map[string]string
}

// supervisor ends errors about kinds that are in another file of the vSphere provider's release, which replaces its components.
const supervisor = ` in version "vmware.infrastructure.cluster.x-k8s.io/v1beta2"`

// providerReleases returns the tested releases, by name. host is where the API servers of their Clusters are.
func providerReleases(host string) map[string]providerRelease {
	return map[string]providerRelease{
		"aws": {
			contract: "v1beta1", speaks: "v1beta1, v1beta2", class: "cluster-template-simple-clusterclass.yaml",
			version: "v2.11.1", namespace: "capa-system", whole: "cluster-template-flatcar.yaml",
			rejected: map[string]string{"cluster-template-eks-nodeadm-clusterclass.yaml": `unknown field "spec.controlPlane.ref"`},
			variables: map[string]string{
				"AWS_B64ENCODED_CREDENTIALS": "eA==", "AWS_SSH_KEY_NAME": "default", "AWS_REGION": "eu-central-1",
				"AWS_AVAILABILITY_ZONE": "eu-central-1a", "AWS_NODE_MACHINE_TYPE": "t3.large", "AWS_CONTROL_PLANE_MACHINE_TYPE": "t3.large",
				"AWS_S3_BUCKET_NAME": "ignition", "COREOS_EC2_HOSTNAME": "host", "CNI_RESOURCES": "'{}'", "CLUSTER_CLASS_NAME": "eks",
			},
		},
		"azure": {
			contract: "v1beta1", speaks: "v1beta1",
			version: "v1.26.0", namespace: "capz-system", whole: "cluster-template.yaml",
			// Its ClusterClass is not among the files.
			rejected: map[string]string{
				"cluster-template-topology.yaml": "which exists neither in namespace azure-topology of the management cluster",
			},
			variables: map[string]string{
				"AZURE_SUBSCRIPTION_ID": "5d5a7a8c-1111-4222-8333-000000000001", "AZURE_TENANT_ID": "5d5a7a8c-1111-4222-8333-000000000002",
				"AZURE_CLIENT_ID_USER_ASSIGNED_IDENTITY": "5d5a7a8c-1111-4222-8333-000000000003", "AZURE_LOCATION": "westeurope",
				"AZURE_NODE_MACHINE_TYPE": "Standard_D2s_v3", "AZURE_CONTROL_PLANE_MACHINE_TYPE": "Standard_D2s_v3",
				"CLUSTER_IDENTITY_NAME": "identity", "ASO_CREDENTIAL_SECRET_NAME": "aso", "APISERVER_LB_DNS_SUFFIX": "a1b2",
				"FLATCAR_VERSION": "3815.2.0", "CLUSTER_CLASS_NAME": "default",
			},
		},
		"hetzner": {
			contract: "v1beta1", speaks: "v1beta2",
			version: "v1.1.8", namespace: "caph-system", whole: "cluster-template-hetzner-hcloud-control-planes.yaml", always: true,
			variables: map[string]string{
				"HCLOUD_REGION": "fsn1", "HCLOUD_WORKER_MACHINE_TYPE": "cpx31", "HCLOUD_CONTROL_PLANE_MACHINE_TYPE": "cpx31",
				"BAREMETAL_POOL": "pool", "SSH_KEY_NAME": "key",
			},
		},
		"metal3": {
			contract: "v1beta2", speaks: "v1beta2",
			version: "v1.13.2", namespace: "capm3-system", whole: "clusterctl-cluster.yaml",
			rejected: map[string]string{
				// Pools are those of another controller, which users install themselves.
				"cluster.yaml": `no matches for kind "IPPool" in version "ipam.metal3.io/v1alpha1"`,
				// It has a field of v1beta1 in v1beta2.
				"clusterclass.yaml": `unknown field "spec.controlPlane.machineHealthCheck"`,
			},
			variables: map[string]string{
				"IMAGE_URL": "http://172.22.0.1/images/node.img", "IMAGE_FORMAT": "raw", "IMAGE_CHECKSUM": "abcd", "IMAGE_CHECKSUM_TYPE": "sha256",
				"CLUSTER_APIENDPOINT_HOST":     host,
				"WORKERS_KUBEADM_EXTRA_CONFIG": "''", "CTLPLANE_KUBEADM_EXTRA_CONFIG": "''",
			},
		},
		"openstack": {
			contract: "v1beta1", speaks: "v1beta1, v1beta2", class: "cluster-template-topology.yaml",
			version: "v0.14.7", namespace: "capo-system", whole: "cluster-template.yaml",
			rejected: map[string]string{
				// Images are those of another controller, which users install themselves.
				"image-template-node.yaml":    `no matches for kind "Image" in version "openstack.k-orc.cloud/v1alpha1"`,
				"image-template-bastion.yaml": `no matches for kind "Image" in version "openstack.k-orc.cloud/v1alpha1"`,
			},
			variables: map[string]string{
				"OPENSTACK_CLOUD": "cloud", "OPENSTACK_CLOUD_YAML_B64": "eA==", "OPENSTACK_CLOUD_CACERT_B64": "eA==",
				"OPENSTACK_SSH_KEY_NAME": "key", "OPENSTACK_IMAGE_NAME": "ubuntu", "OPENSTACK_FLATCAR_IMAGE_NAME": "flatcar",
				"FLATCAR_IMAGE_NAME": "flatcar", "OPENSTACK_NODE_MACHINE_FLAVOR": "m1.small", "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR": "m1.medium",
				"OPENSTACK_FAILURE_DOMAIN": "nova", "OPENSTACK_DNS_NAMESERVERS": "8.8.8.8",
				"OPENSTACK_EXTERNAL_NETWORK_ID":  "5d5a7a8c-1111-4222-8333-000000000004",
				"COREOS_OPENSTACK_INSTANCE_UUID": "5d5a7a8c-1111-4222-8333-000000000005", "COREOS_OPENSTACK_HOSTNAME": "host.local",
			},
		},
		"vsphere": {
			contract: "v1beta2", speaks: "v1beta2", class: "cluster-template-topology.yaml",
			version: "v1.16.1", namespace: "capv-system", whole: "cluster-template.yaml", always: true,
			rejected: map[string]string{
				"cluster-template-supervisor.yaml":      `no matches for kind "VSphereCluster"` + supervisor,
				"clusterclass-template-supervisor.yaml": `no matches for kind "VSphereClusterTemplate"` + supervisor,
				// The class has the name of another flavor's, whose variables it does not set.
				"cluster-template-topology-supervisor.yaml": `variable "infraServer" is required`,
			},
			variables: map[string]string{
				"VSPHERE_USERNAME": "user", "VSPHERE_PASSWORD": "secret", "VSPHERE_SERVER": "10.0.0.1", "VSPHERE_DATACENTER": "dc",
				"VSPHERE_DATASTORE": "ds", "VSPHERE_NETWORK": "VM Network", "VSPHERE_FOLDER": "vm", "VSPHERE_RESOURCE_POOL": "'*/Resources'",
				"VSPHERE_TEMPLATE": "ubuntu", "VSPHERE_IMAGE_NAME": "ubuntu", "VSPHERE_MACHINE_CLASS_NAME": "small", "VSPHERE_STORAGE_CLASS": "gold",
				"VSPHERE_STORAGE_POLICY": "gold", "VSPHERE_SSH_AUTHORIZED_KEY": "ssh-rsa AAAA", "VSPHERE_TLS_THUMBPRINT": "AA:BB",
				"CONTROL_PLANE_ENDPOINT_IP": host, "CPI_IMAGE_K8S_VERSION": "v1.30.0", "NAMESERVER": "8.8.8.8", "NODE_IPAM_POOL_NAME": "pool",
				"NODE_IPAM_POOL_KIND": "InClusterIPPool", "NODE_IPAM_POOL_API_GROUP": "ipam.cluster.x-k8s.io", "COREOS_CUSTOM_HOSTNAME": "host",
				"OUTPUT": "/run/metadata/coreos", "CLUSTER_CLASS_NAME": "template",
			},
		},
	}
}

// lives reports whether the Cluster of a template is upgraded and moved.
func (r providerRelease) lives(file string) bool {
	return slices.Contains([]string{r.whole, r.class}, filepath.Base(file))
}
