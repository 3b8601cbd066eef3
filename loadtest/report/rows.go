package report

import (
	"encoding/json"
	"fmt"
	"os"
)

// Each is a figure of all rounds, in their order.
func Each[F any](rounds []F, of func(F) float64) []float64 {
	all := make([]float64, len(rounds))
	for i, f := range rounds {
		all[i] = of(f)
	}
	return all
}

// MedianOf is the median of a figure of all rounds.
func MedianOf[F any](rounds []F, of func(F) float64) float64 { return Median(Each(rounds, of)) }

// Write writes rows to the file of --json, if one is named.
func Write[R any](file string, rows []R) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}
