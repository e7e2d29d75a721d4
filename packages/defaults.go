package packages

import (
	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/sdk/version"
)

// Defaults returns the built-in providers, sorted, with the URLs of their latest releases.
func Defaults() []Provider {
	var list []Provider
	for _, group := range []struct {
		t     clusterctlv1.ProviderType
		repos map[string]string
	}{
		{clusterctlv1.CoreProviderType, map[string]string{clusterctlv1.ClusterAPIProviderName: own}},
		{clusterctlv1.BootstrapProviderType, bootstrapRepos()},
		{clusterctlv1.ControlPlaneProviderType, controlPlaneRepos()},
		{clusterctlv1.InfrastructureProviderType, infrastructureRepos()},
		{clusterctlv1.IPAMProviderType, map[string]string{"in-cluster": "kubernetes-sigs/cluster-api-ipam-provider-in-cluster"}},
		{clusterctlv1.AddonProviderType, map[string]string{"helm": "kubernetes-sigs/cluster-api-addon-provider-helm", "fleet": own}},
	} {
		for name, repo := range group.repos {
			file := Word(group.t) + "-components.yaml"
			if f, ok := unusualFiles()[clusterctlv1.ManifestLabel(name, group.t)]; ok {
				file = f
			}
			list = append(list, Provider{Name: name, Type: group.t, URL: releases(repo) + "/latest/" + file})
		}
	}
	Sort(list)
	return list
}

// own stands for the repository of this project.
const own = ""

// releases returns the address of the releases of a repository on GitHub.
func releases(repo string) string {
	if repo == own {
		return version.Releases()
	}
	return "https://github.com/" + repo + "/releases"
}

// unusualFiles maps manifest labels to components files that do not follow the naming convention.
func unusualFiles() map[string]string {
	return map[string]string{
		"infrastructure-docker":    "infrastructure-components-development.yaml",
		"infrastructure-in-memory": "infrastructure-components-in-memory-development.yaml",
	}
}

func bootstrapRepos() map[string]string {
	return map[string]string{
		Kubeadm:                own,
		"k0sproject-k0smotron": "k0sproject/k0smotron",
		"kubekey-k3s":          "kubesphere/kubekey",
		"microk8s":             "canonical/cluster-api-bootstrap-provider-microk8s",
		"ocne":                 "verrazzano/cluster-api-provider-ocne",
		"rke2":                 "rancher-sandbox/cluster-api-provider-rke2",
		"talos":                "siderolabs/cluster-api-bootstrap-provider-talos",
	}
}

func controlPlaneRepos() map[string]string {
	return map[string]string{
		Kubeadm:                own,
		"k0sproject-k0smotron": "k0sproject/k0smotron",
		"kamaji":               "clastix/cluster-api-control-plane-provider-kamaji",
		"kubekey-k3s":          "kubesphere/kubekey",
		"microk8s":             "canonical/cluster-api-control-plane-provider-microk8s",
		"nested":               "kubernetes-sigs/cluster-api-provider-nested",
		"ocne":                 "verrazzano/cluster-api-provider-ocne",
		"rke2":                 "rancher-sandbox/cluster-api-provider-rke2",
		"talos":                "siderolabs/cluster-api-control-plane-provider-talos",
	}
}

func infrastructureRepos() map[string]string {
	repos := map[string]string{
		"byoh":                  "vmware-tanzu/cluster-api-provider-bringyourownhost",
		"coxedge":               "coxedge/cluster-api-provider-coxedge",
		"docker":                own,
		"hetzner":               "syself/cluster-api-provider-hetzner",
		"hivelocity-hivelocity": "hivelocity/cluster-api-provider-hivelocity",
		"in-memory":             own,
		"k0sproject-k0smotron":  "k0sproject/k0smotron",
		"kubekey":               "kubesphere/kubekey",
		"maas":                  "spectrocloud/cluster-api-provider-maas",
		"metal3":                "metal3-io/cluster-api-provider-metal3",
		"nutanix":               "nutanix-cloud-native/cluster-api-provider-nutanix",
		"oci":                   "oracle/cluster-api-provider-oci",
		"outscale":              "outscale/cluster-api-provider-outscale",
		"proxmox":               "ionos-cloud/cluster-api-provider-proxmox",
		"sidero":                "siderolabs/sidero",
		"vcd":                   "vmware/cluster-api-provider-cloud-director",
		"vcluster":              "loft-sh/cluster-api-provider-vcluster",
		"virtink":               "smartxworks/cluster-api-provider-virtink",
	}
	for _, name := range []string{
		"aws", "azure", "cloudstack", "digitalocean", "gcp", "ibmcloud", "kubevirt", "nested", "openstack", "packet", "vsphere",
	} {
		repos[name] = "kubernetes-sigs/cluster-api-provider-" + name
	}
	return repos
}
