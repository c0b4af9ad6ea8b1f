package engines

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// CollectorSource is the folder of the collector's module, from the repository's root.
const CollectorSource = "otelholdall/otlp/collector"

// Collector is the OpenTelemetry collector that make otlp runs, built of the module in
// [CollectorSource]. Its path has a sum of what it is built of: one that was built of anything else is
// never taken for it.
func Collector() (program string, err error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	of := sha256.New()
	for _, name := range []string{"main.go", "go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, CollectorSource, name))
		if err != nil {
			return "", err
		}
		of.Write(text)
	}
	home := "otel-collector-" + hex.EncodeToString(of.Sum(nil))[:12]
	return filepath.Join(root, ".engines", home, "collector"), nil
}
