package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1beta1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	infrav1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// dockerKinds returns the kinds of the Docker provider that are in both versions.
func dockerKinds() []*lossless.Kind {
	old := infrav1beta1.GroupVersion
	cluster, template := path{"spec"}, path{"spec", "template", "spec"}
	backend := path{"backend", "docker"}
	return []*lossless.Kind{
		docker(at[infrav1.DockerCluster](infrav1.GroupVersion, "DockerCluster"), at[infrav1beta1.DockerCluster](old, "DockerCluster"),
			cluster, path{"status"}),
		docker(at[infrav1.DockerClusterTemplate](infrav1.GroupVersion, "DockerClusterTemplate"),
			at[infrav1beta1.DockerClusterTemplate](old, "DockerClusterTemplate"), template),
		docker(at[infrav1.DockerMachine](infrav1.GroupVersion, "DockerMachine"), at[infrav1beta1.DockerMachine](old, "DockerMachine")),
		docker(at[infrav1.DockerMachineTemplate](infrav1.GroupVersion, "DockerMachineTemplate"),
			at[infrav1beta1.DockerMachineTemplate](old, "DockerMachineTemplate")),
		dockerPool(at[infrav1.DockerMachinePool](infrav1.GroupVersion, "DockerMachinePool"),
			at[infrav1beta1.DockerMachinePool](old, "DockerMachinePool")),
		similar(at[infrav1.DockerMachinePoolTemplate](infrav1.GroupVersion, "DockerMachinePoolTemplate"),
			at[infrav1beta1.DockerMachinePoolTemplate](old, "DockerMachinePoolTemplate")),
		docker(at[infrav1.DevCluster](infrav1.GroupVersion, "DevCluster"), at[infrav1beta1.DevCluster](old, "DevCluster"),
			append(slices.Clip(cluster), backend...), path{"status"}),
		docker(at[infrav1.DevClusterTemplate](infrav1.GroupVersion, "DevClusterTemplate"),
			at[infrav1beta1.DevClusterTemplate](old, "DevClusterTemplate"), append(slices.Clip(template), backend...)),
		docker(at[infrav1.DevMachine](infrav1.GroupVersion, "DevMachine"), at[infrav1beta1.DevMachine](old, "DevMachine")),
		docker(at[infrav1.DevMachineTemplate](infrav1.GroupVersion, "DevMachineTemplate"),
			at[infrav1beta1.DevMachineTemplate](old, "DevMachineTemplate")),
	}
}

// dockerPool is how DockerMachinePools are converted, which have in v1beta2 both the field of contract v1beta1 and that of v1beta2.
func dockerPool(hub, spoke lossless.Version) *lossless.Kind {
	kind := similar(hub, spoke)
	up, down := kind.Up, kind.Down
	kind.Up = func(o object) {
		if status := lossless.At(o, "status"); status["ready"] == true {
			lossless.Put(status, true, "initialization", "provisioned")
		}
		up(o)
	}
	kind.Down = func(o object, version lossless.VersionOf) {
		delete(lossless.At(o, "status"), "initialization")
		down(o, version)
	}
	return kind
}

// docker is how a kind is converted that has failure domains at some paths.
func docker(hub, spoke lossless.Version, domains ...path) *lossless.Kind {
	status := status{done: [][2]string{{"ready", "provisioned"}}}
	return &lossless.Kind{
		Hub: hub, Spoke: spoke,
		Up: func(o object) {
			for _, path := range domains {
				failureDomainsUp(lossless.At(o, path...))
			}
			status.up(lossless.At(o, "status"))
		},
		Down: func(o object, _ lossless.VersionOf) {
			status.down(lossless.At(o, "status"))
			for _, path := range domains {
				failureDomainsDown(lossless.At(o, path...))
			}
		},
		Verbatim: []string{"spec"},
		Grouping: statusGrouping(),
	}
}

// Infrastructure is how a kind of another infrastructure provider is converted: its status differs as the contracts do.
func Infrastructure[Hub, Spoke any, HubPointer interface {
	*Hub
	client.Object
}, SpokePointer interface {
	*Spoke
	client.Object
}](hub, spoke schema.GroupVersion, kind string) *lossless.Kind {
	between := docker(at[Hub, HubPointer](hub, kind), at[Spoke, SpokePointer](spoke, kind), path{"status"})
	between.AsWritten = isTemplate(kind)
	return between
}
