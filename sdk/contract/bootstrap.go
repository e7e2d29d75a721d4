package contract

// Bootstrap is the object that Machine.spec.bootstrap.configRef refers to.
type Bootstrap struct{ Object }

// BootstrapOf returns o as a Bootstrap.
func BootstrapOf(o Object) Bootstrap { return Bootstrap{o} }

// DataSecretCreated reports whether the Secret with the bootstrap data exists: status.initialization.dataSecretCreated, or status.ready in
// V1Beta1. False if absent.
func (b Bootstrap) DataSecretCreated() (bool, error) { return b.flag("ready", "dataSecretCreated") }

// DataSecretName returns status.dataSecretName; empty if absent.
func (b Bootstrap) DataSecretName() (string, error) {
	name, _, err := field[string](b.Object, "status", "dataSecretName")
	return name, err
}

// DataSecretCreatedField returns the path of the field that DataSecretCreated reads.
func (b Bootstrap) DataSecretCreatedField() string { return b.flagField("ready", "dataSecretCreated") }
