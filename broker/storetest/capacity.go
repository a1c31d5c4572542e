package storetest

func capacityClauses() []clause { return nil }
