"""How far the engine is from what the machine allows, and where its time goes."""
