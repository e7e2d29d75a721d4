package contract

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Bootstrap is the object that Machine.spec.bootstrap.configRef refers to.
type Bootstrap struct{ Object }

// BootstrapOf returns u as a Bootstrap.
func BootstrapOf(u *unstructured.Unstructured) Bootstrap { return Bootstrap{Object{u}} }

// DataSecretName returns status.dataSecretName; empty if absent.
func (b Bootstrap) DataSecretName() (string, error) {
	name, _, err := field[string](b.Object, "status", "dataSecretName")
	return name, err
}
